#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "scanners/device/capture.h"
#include "scanners/diagnose/diagnose.h"

/// A capture that is read can be written, read again, and diagnosed.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace metaldoctor;
  static const Tables tables = Tables::embedded().value();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto capture = read_capture(tables, text, "fuzz");
  if (!capture) return 0;
  const std::string written = to_json(*capture).dump();
  const auto again = read_capture(tables, written, "fuzz");
  if (!again || to_json(*again).dump() != written) std::abort();
  static_cast<void>(diagnose(tables, *capture, {}));
  DiagnoseOptions options;
  options.host = tables.chip("M1 Ultra");
  static_cast<void>(diagnose(tables, *capture, options));
  return 0;
}
