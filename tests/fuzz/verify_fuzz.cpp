// An emitted library with edits: each four bytes of the input are an offset and a new byte. verify
// reads whatever comes of it, and passes nothing but the unedited file.
#include <cstdint>
#include <cstdlib>

#include "shim/verify.h"

using namespace metaldoctor;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Tables tables = *Tables::embedded();
  static const std::vector<std::uint8_t> emitted =
      *specialise(embedded_template(), "template", "mdp1;all;process;host;1:1006=1;1:1007=1;.");
  std::vector<std::uint8_t> bytes = emitted;
  for (std::size_t i = 0; i + 4 <= size && i < 256; i += 4) {
    const std::size_t offset = data[i] << 16 | data[i + 1] << 8 | data[i + 2];
    bytes[offset % bytes.size()] = data[i + 3];
  }
  const auto report = verify_static(tables, bytes, "fuzz");
  const bool passed = report && report->passed();
  if (passed != (bytes == emitted)) std::abort();
  return 0;
}
