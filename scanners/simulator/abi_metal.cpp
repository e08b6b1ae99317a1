#include "scanners/simulator/abi_tables.h"
#include "scanners/simulator/call_access.h"

namespace metaldoctor {
namespace {

/// The first device of the array; nil when there is none.
void do_default_device(Call& call) {
  if (!call.process.devices.loaded()) call.process.devices.load_metal();
  const auto& devices = call.process.devices.array();
  call.returns(devices.empty() ? 0 : devices[0]);
}
void do_all_devices(Call& call) {
  if (!call.process.devices.loaded()) call.process.devices.load_metal();
  const std::vector<std::uint64_t> devices = call.process.devices.array();
  ObjcObject* list = call.process.new_object("NSArray", "MTLCopyAllDevices");
  list->items = devices;
  call.returns(list->address);
}
/// MTLCopyAllDevicesWithObserver(id *observer, block): the block is told of changes, of which
/// there are none.
void do_all_devices_observed(Call& call) {
  const std::uint64_t observer = call.arg(0);
  if (observer)
    call.store(observer,
               call.process.new_object("MTLDeviceObserver", "MTLDeviceObserver")->address);
  do_all_devices(call);
}

// ---- CoreFoundation

void do_identity(Call& call) {
  call.returns(call.arg(0));
}
void do_array_count(Call& call) {
  call.returns(call.process.send(call.arg(0), "count", {}, SystemLibrary::foundation));
}
void do_array_at(Call& call) {
  call.returns(
      call.process.send(call.arg(0), "objectAtIndex:", {call.arg(1)}, SystemLibrary::foundation));
}
void do_string_length(Call& call) {
  call.returns(call.process.send(call.arg(0), "length", {}, SystemLibrary::foundation));
}
/// CFStringGetCString(string, buffer, size, encoding)
void do_get_cstring(Call& call) {
  const auto text = call.process.string_of(call.arg(0));
  if (!text || text->size() + 1 > call.arg(2)) return call.returns(0);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text->c_str());
  if (!call.process.memory.write(call.arg(1), {bytes, text->size() + 1}))
    call.fault("cannot be written", call.arg(1));
  call.returns(1);
}
void do_cstring_pointer(Call& call) {
  call.returns(call.process.send(call.arg(0), "UTF8String", {}, SystemLibrary::foundation));
}
void do_string_with_cstring(Call& call) {
  call.returns(call.process.new_string(call.text(1)));
}

constexpr auto exact = Fidelity::exact;
constexpr auto constant = Fidelity::constant;

constexpr HostFunction functions[] = {
    {"_MTLCreateSystemDefaultDevice", exact, do_default_device},
    {"_MTLCopyAllDevices", exact, do_all_devices},
    {"_MTLCopyAllDevicesWithObserver", exact, do_all_devices_observed},
    {"_MTLRemoveDeviceObserver", constant},
    {"_CGDirectDisplayCopyCurrentMetalDevice", exact, do_default_device},
    {"_CGMainDisplayID", constant, nullptr, 1},
    {"_CFRetain", exact, do_identity},
    {"_CFAutorelease", exact, do_identity},
    {"_CFRelease", constant},
    {"_CFArrayGetCount", exact, do_array_count},
    {"_CFArrayGetValueAtIndex", exact, do_array_at},
    {"_CFStringGetLength", exact, do_string_length},
    {"_CFStringGetCString", exact, do_get_cstring},
    {"_CFStringGetCStringPtr", exact, do_cstring_pointer},
    {"_CFStringCreateWithCString", exact, do_string_with_cstring},
    {"_NSStringFromClass", exact,
     [](Call& c) {
       const ObjcClass* cls = c.process.objc.class_at(c.arg(0));
       c.returns(cls ? c.process.new_string(cls->name) : 0);
     }},
    {"_NSStringFromSelector", exact, [](Call& c) { c.returns(c.process.new_string(c.text(0))); }},
    {"_NSSelectorFromString", exact,
     [](Call& c) {
       c.returns(c.process.objc.selector(c.process.string_of(c.arg(0)).value_or("")));
     }},
    {"_NSClassFromString", exact,
     [](Call& c) {
       const ObjcClass* cls = c.process.objc.find(c.process.string_of(c.arg(0)).value_or(""));
       c.returns(cls ? cls->address : 0);
     }},
    {"_IORegistryEntryIDMatching", Fidelity::assumed},
    {"_IOServiceGetMatchingService", Fidelity::assumed},
    {"_IOObjectRelease", constant},
};

}  // namespace

std::span<const HostFunction> metal_functions() {
  return functions;
}

}  // namespace metaldoctor
