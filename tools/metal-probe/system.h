#pragma once
// What metal-probe imports besides what the injected library does: it sends messages.
#include "shim/dylib/system.h"

extern "C" {
// libobjc
void objc_msgSend();
#if defined(__x86_64__)
void objc_msgSend_stret();  ///< for results that do not fit registers
#endif
void* objc_autoreleasePoolPush();
void objc_autoreleasePoolPop(void* pool);

// Metal
objc_object* MTLCreateSystemDefaultDevice();
objc_object* MTLCopyAllDevices();

// libSystem
int sysctlbyname(const char* name, void* value, size_t* size, void* new_value, size_t new_size);
}

namespace metaldoctor::probe {

using shim::Id;
using shim::Sel;

template <typename R = Id, typename... A>
R send(void* receiver, const char* selector, A... arguments) {
  return reinterpret_cast<R (*)(void*, Sel, A...)>(&objc_msgSend)(
      receiver, sel_registerName(selector), arguments...);
}

}  // namespace metaldoctor::probe
