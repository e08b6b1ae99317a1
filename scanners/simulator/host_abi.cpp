#include "scanners/simulator/host_abi.h"

#include <array>
#include <unordered_map>

#include "scanners/simulator/abi_tables.h"
#include "scanners/simulator/process.h"

namespace metaldoctor {
namespace {

using Content = HostDatum::Content;

constexpr std::array<HostDatum, 22> data = {{
    {"___stack_chk_guard", 8, Content::word, 0x5bd1'e995'0c3a'7100, {}},
    {"___stderrp", 8, Content::file, 2, {}},
    {"___stdoutp", 8, Content::file, 1, {}},
    {"___stdinp", 8, Content::file, 0, {}},
    {"_environ", 8, Content::zeros, 0, {}},
    {"_mach_task_self_", 4, Content::word, 0x203, {}},
    {"_vm_page_size", 8, Content::word, 0x4000, {}},
    {"_vm_kernel_page_size", 8, Content::word, 0x4000, {}},
    {"__DefaultRuneLocale", 0x1000, Content::zeros, 0, {}},
    {"__dispatch_main_q", 0x80, Content::zeros, 0, {}},
    {"__dispatch_queue_attr_concurrent", 0x80, Content::zeros, 0, {}},
    {"__dispatch_source_type_timer", 0x80, Content::zeros, 0, {}},
    {"__NSConcreteStackBlock", 0x100, Content::object, 0, "__NSStackBlock__"},
    {"__NSConcreteGlobalBlock", 0x100, Content::object, 0, "__NSGlobalBlock__"},
    {"__NSConcreteMallocBlock", 0x100, Content::object, 0, "__NSMallocBlock__"},
    {"___CFConstantStringClassReference", 0x40, Content::object, 0, "__NSCFConstantString"},
    {"_kCFAllocatorDefault", 8, Content::zeros, 0, {}},
    {"_kIOMainPortDefault", 4, Content::zeros, 0, {}},
    {"_kIOMasterPortDefault", 4, Content::zeros, 0, {}},
    {"__objc_empty_cache", 0x10, Content::zeros, 0, {}},
    {"_NSDefaultRunLoopMode", 8, Content::text, 0, "kCFRunLoopDefaultMode"},
    {"_NSLocalizedDescriptionKey", 8, Content::text, 0, "NSLocalizedDescription"},
}};
/// C++ tables that are only pointed to: vtables and type infos of the runtime.
constexpr HostDatum cxx_table = {"vtable", 0x100, Content::zeros, 0, {}};

}  // namespace

const HostFunction* host_function(std::string_view name) {
  static const auto all = [] {
    std::unordered_map<std::string_view, const HostFunction*> map;
    for (const auto part :
         {memory_functions(), string_functions(), stdio_functions(), math_functions(),
          system_functions(), loader_functions(), cxx_functions(), dispatch_functions(),
          objc_functions(), metal_functions()})
      for (const HostFunction& function : part) map.emplace(function.name, &function);
    return map;
  }();
  const auto found = all.find(name);
  return found == all.end() ? nullptr : found->second;
}

const HostDatum* host_datum(std::string_view name) {
  for (const HostDatum& datum : data)
    if (datum.name == name) return &datum;
  if (name.starts_with("__ZTV") || name.starts_with("__ZTI") || name.starts_with("_OBJC_EHTYPE_"))
    return &cxx_table;
  return nullptr;
}

std::uint64_t make_datum(Process& process, const HostDatum& datum) {
  // Block classes and constant strings: the datum is the class object itself.
  if (datum.content == Content::object) {
    ObjcClass& cls = process.objc.ensure(datum.text, process.objc.find("NSObject"), "Foundation");
    return cls.address;
  }
  const std::uint64_t address = process.objc.reserve(datum.size);
  if (!address) return 0;
  if (datum.content == Content::word)
    process.memory.write(
        address,
        {reinterpret_cast<const std::uint8_t*>(&datum.value), std::min<std::size_t>(datum.size, 8)},
        true);
  if (datum.content == Content::text)
    process.memory.store(address, process.new_string(std::string(datum.text)), true);
  if (datum.content == Content::file) {
    // A FILE: the descriptor is where Darwin's struct has _file.
    constexpr std::uint64_t file_size = 0x98, descriptor_at = 0x12;
    const std::uint64_t file = process.objc.reserve(file_size);
    process.memory.store(file + descriptor_at, static_cast<std::int16_t>(datum.value), true);
    process.memory.store(address, file, true);
  }
  return address;
}

}  // namespace metaldoctor
