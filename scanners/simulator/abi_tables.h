#pragma once
#include <span>

#include "scanners/simulator/host_abi.h"

namespace metaldoctor {

// The registry in parts: one table a header of macOS, each in its own file.
std::span<const HostFunction> memory_functions();    ///< stdlib.h, string.h, mach/vm_map.h
std::span<const HostFunction> string_functions();    ///< string.h, stdlib.h
std::span<const HostFunction> stdio_functions();     ///< stdio.h, unistd.h, fcntl.h
std::span<const HostFunction> math_functions();      ///< math.h
std::span<const HostFunction> system_functions();    ///< unistd.h, sys/sysctl.h, time.h, pthread.h
std::span<const HostFunction> loader_functions();    ///< dlfcn.h, mach-o/dyld.h
std::span<const HostFunction> cxx_functions();       ///< the C++ ABI and libc++
std::span<const HostFunction> dispatch_functions();  ///< dispatch/dispatch.h, Block.h
std::span<const HostFunction> objc_functions();      ///< objc/runtime.h, objc/message.h
std::span<const HostFunction> metal_functions();     ///< Metal's factories, CoreFoundation

}  // namespace metaldoctor
