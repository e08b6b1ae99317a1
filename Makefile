# Two commands are all a newcomer needs: make demo, make test.
.PHONY: demo test build setup asan fuzz bench golden format check-format check-macos tidy clean

# Seconds that each fuzz target runs in `make fuzz`.
FUZZ_SECONDS ?= 60
BUILD := build/release

demo: build
	@$(BUILD)/bin/metaldoctor scan --capture cua-2026-08-stock || [ $$? -eq 1 ]
	@echo
	@$(BUILD)/bin/metaldoctor recommend --app llama.cpp --capture cua-2026-08-stock

test: build
	@ctest --preset release -j 2

setup:
	@tools/setup/install-dependencies

build: setup
	@[ -f $(BUILD)/build.ninja ] || cmake --preset release >/dev/null
	@cmake --build $(BUILD) -- --quiet

# The parsers, what decides from them, and the command line. The fuzz preset is AddressSanitizer and
# UndefinedBehaviorSanitizer plus libFuzzer's coverage, so one build serves both.
SANITIZED := metaldoctor unit_tables unit_device unit_diagnose unit_shim unit_macho unit_inject unit_platform inject_commands table_file document_check macho_fixtures fuzzers

asan: setup
	@cmake --preset fuzz >/dev/null
	@cmake --build build/fuzz --target $(SANITIZED) -- --quiet
	@ctest --test-dir build/fuzz --output-on-failure -j 2 -R '^(tables|device|diagnose|shim|macho|inject|platform|cli|fuzz)\.'

fuzz: setup
	@cmake --preset fuzz >/dev/null
	@cmake --build build/fuzz --target fuzzers -- --quiet
	@tests/fuzz/run build/fuzz $(FUZZ_SECONDS)

bench: build
	@tests/bench/run $(BUILD)

golden: build
	@tests/cli/golden --update $(BUILD)/bin/metaldoctor

format:
	@git ls-files '*.h' '*.cpp' | xargs clang-format-22 -i

check-format: setup
	@git ls-files '*.h' '*.cpp' | xargs clang-format-22 --dry-run --Werror

tidy: build
	@git ls-files 'tables/*.cpp' 'scanners/*.cpp' 'shim/*.cpp' 'tools/*.cpp' | xargs -P 2 -n 4 clang-tidy-22 -p $(BUILD) --quiet

# The whole tree for arm64 macOS, as far as a compiler gets without its SDK; skipped when offline.
check-macos: build
	@tests/macos/syntax_check.py $(BUILD) || [ $$? -eq 77 ]

clean:
	@rm -rf build
