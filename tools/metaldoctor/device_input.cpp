#include "tools/metaldoctor/device_input.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "scanners/device/log_reader.h"
#include "tools/metaldoctor/files.h"

namespace metaldoctor {

void DeviceInput::add_options(CLI::App& app) {
  auto* capture_option =
      app.add_option("--capture", capture,
                     "a capture document, or a built-in one (paravirtual, cua-2026-08-stock)");
  capture_option->type_name("FILE|NAME");
  auto* log_option =
      app.add_option("--log", log, "a log of a llama.cpp-family program; - reads standard input");
  log_option->type_name("FILE|-")->excludes(capture_option);
  app.add_option("--block", block, "which device block of the log, from 1")
      ->check(CLI::Range(1, 1000))
      ->needs(log_option);
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

Result<Capture> DeviceInput::read(const Tables& tables, Context& context) const {
  if (!capture.empty()) {
    if (auto text = tables.capture_text(capture)) return read_capture(tables, *text, capture);
    auto text = read_file(capture);
    if (!text) {
      Diagnostic error = text.error();
      std::error_code ignored;
      if (!std::filesystem::exists(capture, ignored)) {
        error.hint = fmt::format("built-in captures: {}", fmt::join(tables.capture_names(), ", "));
      }
      return tl::unexpected(error);
    }
    return read_capture(tables, *text, capture);
  }
  const std::string name = log == "-" ? "standard input" : log;
  auto text = read_file(log);
  if (!text) return tl::unexpected(text.error());
  auto blocks = read_log(tables, *text, name);
  if (!blocks) return tl::unexpected(blocks.error());
  const std::size_t index = block == 0 ? 0 : block - 1;
  if (index >= blocks->size()) {
    return fail(
        Fault::usage, "no-such-block", name,
        fmt::format("has {} device block(s), --block {} is not one", blocks->size(), block));
  }
  if (blocks->size() > 1 && block == 0) {
    context.note(
        fmt::format("metaldoctor: {}: {} device blocks that differ; this is the first, "
                    "choose with --block",
                    name, blocks->size()));
  }
  return std::move((*blocks)[index]);
}

}  // namespace metaldoctor
