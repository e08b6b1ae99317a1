#include <cstdint>

#include "shim/inject/entitlements.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)metaldoctor::read_der_entitlements({data, size}, "fuzz");
  return 0;
}
