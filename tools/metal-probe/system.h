#pragma once
// What metal-probe imports, declared by hand: it is built without any SDK.
#include <stddef.h>
#include <stdint.h>

extern "C" {
// libobjc
struct objc_class;
struct objc_object;
struct objc_selector;
struct objc_method;
objc_class* objc_getClass(const char* name);
objc_class* object_getClass(objc_object* object);
objc_class* class_getSuperclass(objc_class* cls);
const char* class_getName(objc_class* cls);
objc_method* class_getInstanceMethod(objc_class* cls, objc_selector* name);
const char* method_getTypeEncoding(objc_method* method);
objc_selector* sel_registerName(const char* name);
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
long write(int file, const void* bytes, size_t size);
int sysctlbyname(const char* name, void* value, size_t* size, void* new_value, size_t new_size);
}

namespace metaldoctor::probe {

using Id = objc_object*;
using Sel = objc_selector*;

template <typename R = Id, typename... A>
R send(void* receiver, const char* selector, A... arguments) {
  return reinterpret_cast<R (*)(void*, Sel, A...)>(&objc_msgSend)(
      receiver, sel_registerName(selector), arguments...);
}

}  // namespace metaldoctor::probe
