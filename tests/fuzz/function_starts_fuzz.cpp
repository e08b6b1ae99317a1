#include <cstdint>

#include "scanners/macho/function_starts.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace metaldoctor;
  (void)decode_function_starts({data, size}, "fuzz", 0);
  (void)decode_unwind_info({data, size});
  return 0;
}
