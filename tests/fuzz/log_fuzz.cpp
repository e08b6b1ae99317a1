#include <cstdint>
#include <cstdlib>
#include <set>
#include <string_view>

#include "scanners/device/log_reader.h"

/// Whatever is read from a log is a capture that can be written and read again, with one answer
/// to a question.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace metaldoctor;
  static const Tables tables = Tables::embedded().value();
  const auto captures =
      read_log(tables, std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!captures) return 0;
  for (const Capture& capture : *captures) {
    std::set<QueryKey> keys;
    for (const CapturedAnswer& row : capture.answers) {
      if (!keys.insert(row.answer.key).second) std::abort();
    }
    const std::string written = to_json(capture).dump();
    // Schema validation takes a thousand times as long as the log reader: now and then will do.
    if (size % 64 != 0) continue;
    const auto again = read_capture(tables, written, "fuzz");
    if (!again || to_json(*again).dump() != written) std::abort();
  }
  return 0;
}
