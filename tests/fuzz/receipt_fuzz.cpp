#include <cstdint>
#include <string_view>

#include "shim/inject/receipt.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)metaldoctor::read_receipt({reinterpret_cast<const char*>(data), size}, "fuzz");
  return 0;
}
