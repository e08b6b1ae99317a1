#include "scanners/simulator/foundation.h"

#include <fmt/format.h>

#include <algorithm>

#include "scanners/simulator/call_access.h"
#include "tables/os_version.h"

namespace metaldoctor {
namespace {

ObjcObject* self_of(Call& call) {
  ObjcObject* object = call.process.objc.object(call.arg(0));
  if (!object) call.fault("is no object of the host", call.arg(0));
  return object;
}
std::string text_of(Call& call, unsigned index) {
  const auto text = call.process.string_of(call.arg(index));
  if (!text) call.fault("is no string", call.arg(index));
  return text.value_or("");
}
std::size_t device_capture_os(Process& process, std::array<std::uint64_t, 3>& out) {
  const auto& devices = process.request.devices;
  const auto known =
      devices.empty() ? std::nullopt : parse_os_version(devices[0].capture.system.os);
  const OsVersion os = known.value_or(process.tables.newest_macos());
  if (!known) process.assume(fmt::format("macOS is {}", to_string(os)));
  out = {static_cast<std::uint64_t>(os.major), static_cast<std::uint64_t>(os.minor),
         static_cast<std::uint64_t>(os.patch)};
  return out.size();
}

// ---- NSObject

void object_alloc(Call& call) {
  Process& process = call.process;
  ObjcClass* cls = process.objc.class_at(call.arg(0));
  if (!cls) return call.fault("is no class", call.arg(0));
  if (!cls->defined_by_program)
    return call.returns(process.new_object(cls->name, cls->name)->address);
  const std::uint64_t address = process.allocate(cls->instance_size);
  if (!address) return;
  process.memory.clear(address, cls->instance_size);
  process.memory.store(address, cls->address);
  process.objc.adopt(*cls, address, cls->name);
  call.returns(address);
}
void object_new(Call& call) {
  const std::uint64_t made = call.process.send(call.arg(0), "alloc", {}, SystemLibrary::objc);
  call.returns(made ? call.process.send(made, "init", {}, SystemLibrary::objc) : 0);
}
void object_self(Call& call) {
  call.returns(call.arg(0));
}
void object_nothing(Call&) {}
void object_class(Call& call) {
  bool is_class = false;
  const ObjcClass* cls = class_of(call.process, call.arg(0), is_class);
  call.returns(cls ? cls->address : 0);
}
void object_superclass(Call& call) {
  bool is_class = false;
  const ObjcClass* cls = class_of(call.process, call.arg(0), is_class);
  call.returns(cls && cls->superclass ? cls->superclass->address : 0);
}
void object_kind(Call& call) {
  bool is_class = false;
  const ObjcClass* cls = class_of(call.process, call.arg(0), is_class);
  call.returns(cls && cls->is_kind_of(call.process.objc.class_at(call.arg(2))));
}
void object_member(Call& call) {
  bool is_class = false;
  const ObjcClass* cls = class_of(call.process, call.arg(0), is_class);
  call.returns(cls && cls == call.process.objc.class_at(call.arg(2)));
}
void object_responds(Call& call) {
  const auto selector = call.process.objc.selector_name(call.arg(2));
  call.returns(selector && responds(call.process, call.arg(0), *selector));
}
void object_equal(Call& call) {
  call.returns(call.arg(0) == call.arg(2));
}
void object_description(Call& call) {
  const auto text = call.process.string_of(call.arg(0));
  call.returns(call.process.new_string(
      text ? *text : fmt::format("<{}>", call.process.name_of(call.arg(0)))));
}
void object_method_for(Call& call) {
  bool is_class = false;
  ObjcClass* cls = class_of(call.process, call.arg(0), is_class);
  const auto selector = call.process.objc.selector_name(call.arg(2));
  const ObjcMethod* found =
      cls && selector ? call.process.objc.lookup(*cls, *selector, is_class) : nullptr;
  call.returns(found ? found->imp : 0);
}

// ---- NSString

void string_utf8(Call& call) {
  Process& process = call.process;
  const std::string text = text_of(call, 0);
  ObjcObject* object = process.objc.object(call.arg(0));
  if (object && object->buffer) return call.returns(object->buffer);
  const std::uint64_t bytes = process.allocate_text(text);
  if (object) object->buffer = bytes;
  call.returns(bytes);
}
void string_length(Call& call) {
  call.returns(text_of(call, 0).size());
}
void string_from_utf8(Call& call) {
  if (call.arg(2) == 0) return call.returns(0);
  call.returns(call.process.new_string(call.text(2)));
}
/// initWithBytes:length:encoding:, with or without a copy.
void string_from_bytes(Call& call) {
  constexpr std::uint64_t most = std::uint64_t{64} << 20;
  if (call.arg(3) > most) return call.fault("is too long a string", call.arg(2));
  std::string text(call.arg(3), '\0');
  if (!call.process.memory.read(call.arg(2),
                                {reinterpret_cast<std::uint8_t*>(text.data()), text.size()}))
    call.fault("cannot be read", call.arg(2));
  call.returns(call.process.new_string(std::move(text)));
}
void string_with_string(Call& call) {
  call.returns(call.process.new_string(text_of(call, 2)));
}
void string_format(Call& call) {
  VarArgs arguments = VarArgs::of_call(call, 3);
  call.returns(call.process.new_string(format_text(call.process, text_of(call, 2), arguments)));
}
void string_append(Call& call) {
  call.returns(call.process.new_string(text_of(call, 0) + text_of(call, 2)));
}
void string_equal(Call& call) {
  const auto other = call.process.string_of(call.arg(2));
  call.returns(other && text_of(call, 0) == *other);
}
void string_prefix(Call& call) {
  call.returns(text_of(call, 0).starts_with(text_of(call, 2)));
}
void string_suffix(Call& call) {
  call.returns(text_of(call, 0).ends_with(text_of(call, 2)));
}
void string_contains(Call& call) {
  call.returns(text_of(call, 0).find(text_of(call, 2)) != std::string::npos);
}
/// NSRange {location, length}
void string_range(Call& call) {
  constexpr std::uint64_t not_found = 0x7fff'ffff'ffff'ffff;
  const std::string part = text_of(call, 2);
  const auto at = text_of(call, 0).find(part);
  call.returns_pair(at == std::string::npos ? not_found : at,
                    at == std::string::npos ? 0 : part.size());
}
void string_int(Call& call) {
  call.returns(static_cast<std::uint64_t>(std::strtoll(text_of(call, 0).c_str(), nullptr, 10)));
}

// ---- NSNumber

void number_make(Call& call) {
  ObjcObject* made = call.process.new_object("NSNumber", "NSNumber");
  made->integer = static_cast<std::int64_t>(call.arg(2));
  call.returns(made->address);
}
void number_make_bool(Call& call) {
  ObjcObject* made = call.process.new_object("NSNumber", "NSNumber");
  made->integer = call.arg(2) & 1;
  call.returns(made->address);
}
void number_make_int(Call& call) {
  ObjcObject* made = call.process.new_object("NSNumber", "NSNumber");
  made->integer = static_cast<std::int32_t>(call.arg(2));
  call.returns(made->address);
}
void number_make_double(Call& call) {
  ObjcObject* made = call.process.new_object("NSNumber", "NSNumber");
  made->real = call.real(0);
  call.returns(made->address);
}
void number_integer(Call& call) {
  const ObjcObject* self = self_of(call);
  if (!self) return;
  const auto whole =
      self->real ? static_cast<std::int64_t>(*self->real) : self->integer.value_or(0);
  call.returns(static_cast<std::uint64_t>(whole));
}
void number_double(Call& call) {
  const ObjcObject* self = self_of(call);
  if (self) call.returns_real(self->real.value_or(static_cast<double>(self->integer.value_or(0))));
}

// ---- NSProcessInfo

void process_version(Call& call) {
  std::array<std::uint64_t, 3> version{};
  device_capture_os(call.process, version);
  call.returns_structure(version);
}
void process_at_least(Call& call) {
  // The argument is a structure of 24 bytes: by reference on arm64, on the stack on x86_64.
  std::array<std::uint64_t, 3> version{}, wanted{};
  device_capture_os(call.process, version);
  const bool arm = call.process.machine.arch() == SimArch::arm64;
  const std::uint64_t place = arm ? call.arg(2) : call.process.machine.sp() + 8;
  for (std::size_t i = 0; i < 3; ++i) wanted[i] = call.load<std::uint64_t>(place + i * 8);
  call.returns(version >= wanted);
}
void process_version_text(Call& call) {
  std::array<std::uint64_t, 3> version{};
  device_capture_os(call.process, version);
  call.returns(
      call.process.new_string(fmt::format("Version {}.{}.{}", version[0], version[1], version[2])));
}
void process_environment(Call& call) {
  ObjcObject* made = call.process.new_object("NSDictionary", "environment");
  const std::uint64_t address = made->address;
  for (const auto& [name, value] : call.process.environment) {
    const std::uint64_t key = call.process.new_string(name), text = call.process.new_string(value);
    call.process.objc.object(address)->entries.emplace_back(key, text);
  }
  call.returns(address);
}
void process_name(Call& call) {
  call.returns(call.process.new_string("program"));
}
void one_of_class(Call& call) {  // +processInfo and other shared instances
  bool is_class = false;
  ObjcClass* cls = class_of(call.process, call.arg(0), is_class);
  if (!cls) return call.returns(0);
  std::uint64_t& only = call.process.thread_values[cls->address];
  if (!only) only = call.process.new_object(cls->name, cls->name)->address;
  call.returns(only);
}

constexpr HostMethod methods[] = {
    {"NSObject", "", true, "alloc", "@16@0:8", object_alloc},
    {"NSObject", "", true, "allocWithZone:", "@24@0:8^v16", object_alloc},
    {"NSObject", "", true, "new", "@16@0:8", object_new},
    {"NSObject", "", true, "class", "#16@0:8", object_self},
    {"NSObject", "", true, "initialize", "v16@0:8", object_nothing},
    {"NSObject", "", true, "load", "v16@0:8", object_nothing},
    {"NSObject", "", false, "init", "@16@0:8", object_self},
    {"NSObject", "", false, "self", "@16@0:8", object_self},
    {"NSObject", "", false, "retain", "@16@0:8", object_self},
    {"NSObject", "", false, "autorelease", "@16@0:8", object_self},
    {"NSObject", "", false, "copy", "@16@0:8", object_self},
    {"NSObject", "", false, "mutableCopy", "@16@0:8", object_self},
    {"NSObject", "", false, "release", "v16@0:8", object_nothing},
    {"NSObject", "", false, "dealloc", "v16@0:8", object_nothing},
    {"NSObject", "", false, "class", "#16@0:8", object_class},
    {"NSObject", "", false, "superclass", "#16@0:8", object_superclass},
    {"NSObject", "", false, "isKindOfClass:", "B24@0:8#16", object_kind},
    {"NSObject", "", false, "isMemberOfClass:", "B24@0:8#16", object_member},
    {"NSObject", "", false, "respondsToSelector:", "B24@0:8:16", object_responds},
    {"NSObject", "", false, "isEqual:", "B24@0:8@16", object_equal},
    {"NSObject", "", false, "hash", "Q16@0:8", object_self},
    {"NSObject", "", false, "description", "@16@0:8", object_description},
    {"NSObject", "", false, "methodForSelector:", "^?24@0:8:16", object_method_for},
    {"NSString", "NSObject", true, "stringWithUTF8String:", "@24@0:8r*16", string_from_utf8},
    {"NSString", "NSObject", true, "stringWithCString:encoding:", "@32@0:8r*16Q24",
     string_from_utf8},
    {"NSString", "NSObject", true, "stringWithString:", "@24@0:8@16", string_with_string},
    {"NSString", "NSObject", true, "stringWithFormat:", "@24@0:8@16", string_format},
    {"NSString", "NSObject", false, "initWithUTF8String:", "@24@0:8r*16", string_from_utf8},
    {"NSString", "NSObject", false, "initWithFormat:", "@24@0:8@16", string_format},
    {"NSString", "NSObject", false, "initWithString:", "@24@0:8@16", string_with_string},
    {"NSString", "NSObject", false, "initWithBytes:length:encoding:", "@40@0:8r^v16Q24Q32",
     string_from_bytes},
    {"NSString", "NSObject", false, "initWithBytesNoCopy:length:encoding:freeWhenDone:",
     "@44@0:8^v16Q24Q32B40", string_from_bytes},
    {"NSString", "NSObject", false, "UTF8String", "r*16@0:8", string_utf8},
    {"NSString", "NSObject", false, "cStringUsingEncoding:", "r*24@0:8Q16", string_utf8},
    {"NSString", "NSObject", false, "length", "Q16@0:8", string_length},
    {"NSString", "NSObject", false, "lengthOfBytesUsingEncoding:", "Q24@0:8Q16", string_length},
    {"NSString", "NSObject", false, "stringByAppendingString:", "@24@0:8@16", string_append},
    {"NSString", "NSObject", false, "isEqualToString:", "B24@0:8@16", string_equal},
    {"NSString", "NSObject", false, "isEqual:", "B24@0:8@16", string_equal},
    {"NSString", "NSObject", false, "hasPrefix:", "B24@0:8@16", string_prefix},
    {"NSString", "NSObject", false, "hasSuffix:", "B24@0:8@16", string_suffix},
    {"NSString", "NSObject", false, "containsString:", "B24@0:8@16", string_contains},
    {"NSString", "NSObject", false, "localizedCaseInsensitiveContainsString:", "B24@0:8@16",
     string_contains},
    {"NSString", "NSObject", false, "rangeOfString:", "{_NSRange=QQ}24@0:8@16", string_range},
    {"NSString", "NSObject", false, "intValue", "i16@0:8", string_int},
    {"NSString", "NSObject", false, "integerValue", "q16@0:8", string_int},
    {"NSMutableString", "NSString", true, "string", "@16@0:8", object_new},
    {"__NSCFConstantString", "NSString", false, "isProxy", "B16@0:8", object_nothing},
    {"NSNumber", "NSObject", true, "numberWithBool:", "@20@0:8B16", number_make_bool},
    {"NSNumber", "NSObject", true, "numberWithInt:", "@20@0:8i16", number_make_int},
    {"NSNumber", "NSObject", true, "numberWithInteger:", "@24@0:8q16", number_make},
    {"NSNumber", "NSObject", true, "numberWithUnsignedInteger:", "@24@0:8Q16", number_make},
    {"NSNumber", "NSObject", true, "numberWithUnsignedInt:", "@20@0:8I16", number_make},
    {"NSNumber", "NSObject", true, "numberWithLongLong:", "@24@0:8q16", number_make},
    {"NSNumber", "NSObject", true, "numberWithUnsignedLongLong:", "@24@0:8Q16", number_make},
    {"NSNumber", "NSObject", true, "numberWithDouble:", "@24@0:8d16", number_make_double},
    {"NSNumber", "NSObject", false, "boolValue", "B16@0:8", number_integer},
    {"NSNumber", "NSObject", false, "intValue", "i16@0:8", number_integer},
    {"NSNumber", "NSObject", false, "integerValue", "q16@0:8", number_integer},
    {"NSNumber", "NSObject", false, "unsignedIntegerValue", "Q16@0:8", number_integer},
    {"NSNumber", "NSObject", false, "unsignedLongLongValue", "Q16@0:8", number_integer},
    {"NSNumber", "NSObject", false, "longLongValue", "q16@0:8", number_integer},
    {"NSNumber", "NSObject", false, "doubleValue", "d16@0:8", number_double},
    {"NSProcessInfo", "NSObject", true, "processInfo", "@16@0:8", one_of_class},
    {"NSProcessInfo", "NSObject", false, "operatingSystemVersion", "{?=qqq}16@0:8",
     process_version},
    {"NSProcessInfo", "NSObject", false, "isOperatingSystemAtLeastVersion:", "B40@0:8{?=qqq}16",
     process_at_least},
    {"NSProcessInfo", "NSObject", false, "operatingSystemVersionString", "@16@0:8",
     process_version_text},
    {"NSProcessInfo", "NSObject", false, "environment", "@16@0:8", process_environment},
    {"NSProcessInfo", "NSObject", false, "processName", "@16@0:8", process_name},
    {"NSBundle", "NSObject", true, "mainBundle", "@16@0:8", one_of_class},
    {"MTLCaptureManager", "NSObject", true, "sharedCaptureManager", "@16@0:8", one_of_class},
};

}  // namespace

std::span<const HostMethod> collection_methods();

void register_foundation(Process& process) {
  const auto add = [&](const HostMethod& row) {
    ObjcClass* superclass = row.superclass.empty() ? nullptr : process.objc.find(row.superclass);
    ObjcClass& cls = process.objc.ensure(row.cls, superclass, "Foundation");
    if (row.superclass.empty()) process.objc.set_root(&cls);
    Trap trap;
    trap.name = fmt::format("{}[{} {}]", row.is_class_method ? "+" : "-", row.cls, row.selector);
    trap.library = SystemLibrary::foundation;
    trap.method = row.handler;
    trap.cls = &cls;
    trap.large_structure =
        process.machine.arch() == SimArch::x86_64 && returns_through_memory(row.types);
    const std::uint64_t imp = process.add_trap(std::move(trap));
    std::string types(row.types);
    // BOOL is signed char on x86_64 macOS.
    if (process.machine.arch() == SimArch::x86_64 && types.starts_with('B')) types[0] = 'c';
    auto& table = row.is_class_method ? cls.class_methods : cls.methods;
    table[std::string(row.selector)] = {std::string(row.selector), types, imp, imp, 0};
  };
  std::ranges::for_each(methods, add);
  std::ranges::for_each(collection_methods(), add);
}

}  // namespace metaldoctor
