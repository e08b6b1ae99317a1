#include <cstdint>

#include "scanners/macho/code_signature.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)metaldoctor::parse_code_signature({data, size}, "fuzz", 0);
  return 0;
}
