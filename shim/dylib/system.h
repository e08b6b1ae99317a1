#pragma once
// What the library and metal-probe import, declared by hand: they are built without any SDK. On
// other systems the same names come from the C library and, in tests, from a simulated Objective-C
// runtime.
#include <stddef.h>
#include <stdint.h>

extern "C" {
// libobjc (objc/runtime.h). A Method is a signed pointer on arm64e: it is only passed on.
struct objc_class;
struct objc_object;
struct objc_selector;
struct objc_method;
objc_class* objc_getClass(const char* name);
objc_class* object_getClass(objc_object* object);
objc_class* class_getSuperclass(objc_class* cls);
const char* class_getName(objc_class* cls);
objc_method* class_getInstanceMethod(objc_class* cls, objc_selector* name);
void (*class_replaceMethod(objc_class* cls, objc_selector* name, void (*imp)(),
                           const char* types))();
void (*method_getImplementation(objc_method* method))();
const char* method_getTypeEncoding(objc_method* method);
objc_selector* sel_registerName(const char* name);
}

namespace metaldoctor::shim {
using Class = objc_class*;
using Id = objc_object*;
using Sel = objc_selector*;
using Imp = void (*)();
}  // namespace metaldoctor::shim

#if defined(__APPLE__)
extern "C" {
struct Dl_info {
  const char* dli_fname;
  void* dli_fbase;
  const char* dli_sname;
  void* dli_saddr;
};
int dladdr(const void* address, Dl_info* info);
char* getenv(const char* name);
int unsetenv(const char* name);
int open(const char* path, int flags, ...);
long write(int file, const void* bytes, size_t size);
int getpid();
int* __error();
}
inline constexpr int O_WRONLY = 0x1, O_APPEND = 0x8, O_NOFOLLOW = 0x100, O_CREAT = 0x200,
                     O_CLOEXEC = 0x1000000;  // sys/fcntl.h
#else
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
inline int* __error() {
  return &errno;
}
#endif
