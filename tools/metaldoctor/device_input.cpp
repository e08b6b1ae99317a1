#include "tools/metaldoctor/device_input.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "scanners/device/log_reader.h"
#include "scanners/device/wire_reader.h"
#include "tools/metaldoctor/files.h"
#include "tools/metaldoctor/live_probe.h"
#include "tools/platform/posix_process_runner.h"

namespace metaldoctor {

void DeviceInput::add_options(CLI::App& app) {
  auto* capture_option =
      app.add_option("--capture", capture,
                     "a capture document, what metal-probe wrote, or a built-in capture "
                     "(paravirtual, cua-2026-08-stock); - reads standard input");
  capture_option->type_name("FILE|NAME|-");
  auto* log_option =
      app.add_option("--log", log, "a log of a llama.cpp-family program; - reads standard input");
  log_option->type_name("FILE|-")->excludes(capture_option);
  app.add_option("--probe", probe, "run this metal-probe and take what it prints")
      ->type_name("PROGRAM")
      ->excludes(capture_option)
      ->excludes(log_option);
  app.add_option("--device", device, "which device of the input, from 1")
      ->check(CLI::Range(1, 1000));
  app.add_option("--host-chip", host_chip, "the chip of the Mac that runs the guest: \"M1 Ultra\"")
      ->type_name("CHIP");
  app.add_option("--os", os, "the guest's macOS, where the input does not name it: 26.5")
      ->type_name("VERSION");
}

Result<DiagnoseOptions> DeviceInput::diagnose_options(const Tables& tables) const {
  DiagnoseOptions options;
  if (!host_chip.empty()) {
    options.host = tables.chip(host_chip);
    if (options.host == nullptr) {
      return fail(Fault::usage, "unknown-chip", "--host-chip",
                  fmt::format("no chip '{}' in the tables", host_chip),
                  "metaldoctor tables chips lists them");
    }
  }
  if (!os.empty()) {
    options.os = parse_os_version(os);
    if (!options.os) {
      return fail(Fault::usage, "bad-version", "--os",
                  fmt::format("'{}' is not a macOS version such as 26.5", os));
    }
  }
  return options;
}

namespace {

Result<std::string> capture_text(const Tables& tables, const std::string& capture) {
  if (auto text = tables.capture_text(capture)) return std::string(*text);
  auto text = read_file(capture);
  std::error_code ignored;
  if (text || std::filesystem::exists(capture, ignored)) return text;
  Diagnostic error = text.error();
  error.hint = fmt::format("built-in captures: {}", fmt::join(tables.capture_names(), ", "));
  return tl::unexpected(error);
}

/// JSON begins with a brace; anything else is better told by what it is not.
Result<void> check_is_document(std::string_view text, std::string_view name) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != text.npos && text[first] == '{') return {};
  const bool is_utf16 = text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff");
  return fail(Fault::input, "not-a-capture", std::string(name),
              "is neither a capture document nor what metal-probe printed",
              is_utf16 ? "it is UTF-16: write the file with a shell that keeps bytes"
                       : "a log is read with --log");
}

Result<std::vector<Capture>> probed_devices(const Tables& tables, std::string_view text,
                                            std::string_view name) {
  auto output = read_probe(tables, text, name);
  if (!output) return tl::unexpected(output.error());
  return std::move(output->devices);
}

}  // namespace

std::string DeviceInput::name() const {
  if (!capture.empty()) return capture;
  return log == "-" ? "standard input" : !log.empty() ? log : probe;
}

/// What metal-probe wrote is known by its first line, whichever option names it.
Result<std::vector<Capture>> DeviceInput::devices(const Tables& tables) const {
  if (!probe.empty()) {
    PosixProcessRunner runner;
    const auto text = run_probe(runner, probe);
    if (!text) return tl::unexpected(text.error());
    return probed_devices(tables, *text, probe);
  }
  if (!capture.empty()) {
    auto text = capture_text(tables, capture);
    if (!text) return tl::unexpected(text.error());
    if (is_wire(*text)) return probed_devices(tables, *text, capture);
    if (auto known = check_is_document(*text, capture); !known) {
      return tl::unexpected(known.error());
    }
    auto one = read_capture(tables, *text, capture);
    if (!one) return tl::unexpected(one.error());
    return std::vector<Capture>{*std::move(one)};
  }
  auto text = read_file(log);
  if (!text) return tl::unexpected(text.error());
  return is_wire(*text) ? probed_devices(tables, *text, name()) : read_log(tables, *text, name());
}

Result<Capture> DeviceInput::read(const Tables& tables, Context& context) const {
  auto all = devices(tables);
  if (!all) return tl::unexpected(all.error());
  const std::size_t index = device == 0 ? 0 : device - 1;
  if (index >= all->size()) {
    return fail(Fault::usage, "no-such-device", name(),
                fmt::format("has {} device(s), --device {} is not one", all->size(), device));
  }
  if (all->size() > 1 && device == 0) {
    context.note(fmt::format("metaldoctor: {}: {} devices; this is the first, choose with --device",
                             name(), all->size()));
  }
  return std::move((*all)[index]);
}

}  // namespace metaldoctor
