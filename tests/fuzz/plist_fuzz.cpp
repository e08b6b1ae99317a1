#include <cstdint>
#include <string_view>

#include "shim/inject/plist.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto list = metaldoctor::Plist::read({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!list) return 0;
  (void)list->values();
  // What was read can be written, and read again.
  if (!metaldoctor::Plist::read(list->write(), "again")) __builtin_trap();
  return 0;
}
