#include "scanners/simulator/device_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "scanners/simulator/call_access.h"
#include "scanners/simulator/device_methods.h"

namespace metaldoctor {
namespace {

constexpr std::string_view paravirtual_class = "AppleParavirtDevice";
constexpr std::string_view bare_metal_class = "AGXG13XFamilyDevice";

const RuntimeClass* row_of(const RuntimeTables& tables, std::string_view name) {
  const auto found = std::ranges::find(tables.classes, name, &RuntimeClass::name);
  return found == tables.classes.end() ? nullptr : &*found;
}

/// BOOL is signed char on x86_64 macOS.
std::string on_x86(std::string types) {
  if (types.starts_with('B')) types[0] = 'c';
  return types;
}

std::string default_encoding(const Query& query) {
  if (!query.encoding_arm64.empty()) return query.encoding_arm64;
  const char type = query.type == AnswerType::boolean   ? 'B'
                    : query.type == AnswerType::integer ? 'Q'
                                                        : '@';
  return query.argument.empty() ? fmt::format("{}16@0:8", type) : fmt::format("{}24@0:8Q16", type);
}

}  // namespace

ObjcClass& DeviceModel::add_class(const RuntimeClass& row) {
  if (ObjcClass* known = process_.objc.find(row.name)) return *known;
  const bool arm = process_.machine.arch() == SimArch::arm64;
  const std::string& above = arm ? row.superclass : row.superclass_x86_64;
  const RuntimeClass* parent = row_of(process_.runtime, above);
  ObjcClass* superclass = parent ? &add_class(*parent) : process_.objc.find("NSObject");
  ObjcClass& cls = process_.objc.ensure(row.name, superclass, row.image);
  cls.protocols = row.protocols;
  for (const RuntimeMethod& method : row.methods) add_method(cls, method);
  return cls;
}

void DeviceModel::add_method(ObjcClass& cls, const RuntimeMethod& method) {
  const auto& changes = process_.request.system;
  const auto changed = std::ranges::find_if(changes, [&](const SimMethodChange& change) {
    return change.class_name == cls.name && change.selector == method.selector;
  });
  if (changed != changes.end() && !changed->types) return;
  Trap trap;
  trap.name = fmt::format("-[{} {}]", cls.name, method.selector);
  trap.library = SystemLibrary::metal;
  trap.method = device_method_handler(method.does);
  trap.cls = &cls;
  trap.runtime = &method;
  trap.large_structure =
      process_.machine.arch() == SimArch::x86_64 && returns_through_memory(method.types);
  const std::uint64_t imp = process_.add_trap(std::move(trap));
  const bool arm = process_.machine.arch() == SimArch::arm64;
  std::string types = arm ? method.types : method.types_x86_64;
  if (changed != changes.end()) types = *changed->types;
  cls.methods[method.selector] = {method.selector, std::move(types), imp, imp, 0};
}

void DeviceModel::add_classes_of(std::string_view image) {
  for (const RuntimeClass& row : process_.runtime.classes)
    if (row.image == image) add_class(row);
}

void DeviceModel::load_metal() {
  if (loaded_) return;
  loaded_ = true;
  // Driver classes come with their bundle when the devices are made.
  add_classes_of("Metal");
}

ObjcClass& DeviceModel::driver_class(std::size_t device) {
  const SimDevice& asked = process_.request.devices[device];
  const bool guest = asked.capture.is_guest().value_or(true);
  const std::string name = !asked.driver.empty()
                               ? asked.driver
                               : std::string(guest ? paravirtual_class : bare_metal_class);
  if (ObjcClass* known = process_.objc.find(name)) return *known;
  if (const RuntimeClass* row = row_of(process_.runtime, name)) {
    ObjcClass& cls = add_class(*row);
    add_query_methods(cls);
    return cls;
  }
  process_.assume(fmt::format("the driver class {} is built like {}", name, bare_metal_class));
  RuntimeClass shape = *row_of(process_.runtime, bare_metal_class);
  const bool arm = process_.machine.arch() == SimArch::arm64;
  const RuntimeClass* parent =
      row_of(process_.runtime, arm ? "IOGPUMetalDevice" : "MTLIOAccelDevice");
  ObjcClass& cls = process_.objc.ensure(name, &add_class(*parent), shape.image);
  cls.protocols = shape.protocols;
  for (const RuntimeMethod& method : row_of(process_.runtime, bare_metal_class)->methods)
    add_method(cls, method);
  add_query_methods(cls);
  return cls;
}

/// Drivers implement the whole MTLDevice protocol: what the class tree does not place is theirs.
void DeviceModel::add_query_methods(ObjcClass& driver) {
  const auto add = [&](std::string selector, std::string types, std::string does) {
    if (process_.objc.lookup(driver, selector, false)) return;
    extra_.push_back({std::move(selector), types, on_x86(types), std::move(does), {}});
    add_method(driver, extra_.back());
  };
  add("newResidencySetWithDescriptor:error:", "@32@0:8@16^@24", "residency-set");
  for (const Query& query : process_.tables.queries()) {
    if (query.selector.find('.') != std::string::npos) continue;
    add(query.selector, default_encoding(query), "answer");
  }
}

const std::vector<std::uint64_t>& DeviceModel::array() {
  if (made_) return array_;
  made_ = true;
  const std::size_t count = process_.request.devices.size();
  ready_.assign(count, false);
  for (std::size_t device = 0; device < count && !process_.stopped(); ++device) {
    const std::uint64_t raw = make_device(device);
    if (raw) array_.push_back(wrap(device, raw));
  }
  return array_;
}

/// MTLRegisterDevices and MTLAddDevice, on the raw device.
std::uint64_t DeviceModel::make_device(std::size_t device) {
  ObjcClass& cls = driver_class(device);
  ObjcObject* raw = process_.objc.create(cls, fmt::format("device {}", device));
  if (!raw) return 0;
  raw->device = device;
  const std::uint64_t address = raw->address;
  constexpr std::uint64_t port = 0x1203;
  if (!process_.send(address, "initWithAcceleratorPort:", {port})) return 0;
  for (const std::string_view step : {"initLimits", "initFeatureQueries", "initWorkarounds"})
    process_.send(address, step);
  return address;
}

std::uint64_t DeviceModel::wrap(std::size_t device, std::uint64_t raw) {
  using Wrapper = SimDevice::Wrapper;
  const Wrapper wrapper = process_.request.devices[device].wrapper;
  if (wrapper == Wrapper::none) return raw;
  const bool debug = wrapper == Wrapper::debug;
  add_classes_of(debug ? "MetalTools" : "GPUToolsCapture");
  ObjcClass* cls = process_.objc.find(debug ? "MTLDebugDevice" : "CaptureMTLDevice");
  ObjcObject* made =
      cls ? process_.objc.create(*cls, fmt::format("wrapper of device {}", device)) : nullptr;
  if (!made) return raw;
  made->base = raw;
  process_.recorder.event(fmt::format("{}: wrap {}", device, cls->name));
  const std::uint64_t address = made->address;
  process_.send(raw, "_setDeviceWrapper:", {address});
  return address;
}

/// The table that MTLDeviceFeatureQueries fills once: Metal's own use of supportsFamily:.
void DeviceModel::take_snapshot(std::uint64_t raw) {
  // One question a family is enough for the answer; the count is what Metal would ask.
  std::map<std::int64_t, std::vector<std::string>> by_family;
  for (const auto& [name, family] : process_.runtime.feature_families)
    by_family[family].push_back(name);
  for (const auto& [family, names] : by_family) {
    if (family == 0) continue;  // nobody has it, nobody is asked
    const bool has =
        process_.send(raw, "supportsFamily:", {static_cast<std::uint64_t>(family)}) & 0xff;
    for (std::size_t i = 1; i < names.size(); ++i) process_.recorder.metal_asks(family);
    for (const std::string& name : names)
      if (has) process_.recorder.feature(name);
  }
}

const Value* DeviceModel::find_answer(std::size_t device, const QueryKey& key) const {
  for (const Answer& answer : process_.run.answers)
    if (answer.key == key) return &answer.value;
  const CapturedAnswer* captured = process_.request.devices[device].capture.find(key);
  return captured ? &captured->answer.value : nullptr;
}

std::int64_t DeviceModel::answer(std::size_t device, const QueryKey& key) {
  const Value* value = find_answer(device, key);
  if (value) {
    if (const bool* yes = std::get_if<bool>(value)) return *yes;
    if (const std::int64_t* number = std::get_if<std::int64_t>(value)) return *number;
  }
  process_.assume(fmt::format("device {}: {} is unknown, answered 0", device, to_string(key)));
  return 0;
}

std::string DeviceModel::text_answer(std::size_t device, std::string_view query) {
  const Value* value = find_answer(device, {std::string(query), {}});
  if (value)
    if (const std::string* text = std::get_if<std::string>(value)) return *text;
  const Capture& capture = process_.request.devices[device].capture;
  if (query == "name" && !capture.name.empty()) return capture.name;
  if (query == "architecture.name" && !capture.architecture.empty()) return capture.architecture;
  process_.assume(
      fmt::format("device {}: {} is unknown, answered with an empty text", device, query));
  return {};
}

void DeviceModel::note_question(const ObjcObject& object, std::string_view selector, Call& call) {
  const ObjcObject* raw = object.base ? process_.objc.object(object.base) : &object;
  const bool nested = object.cls->name == "MTLArchitecture";
  const Query* query = process_.tables.query(nested ? "architecture." + std::string(selector)
                                                    : std::string(selector));
  if (!raw || !(raw->device || nested) || !query) return;
  SimQuery asked;
  asked.key.query = query->selector;
  const auto arguments = std::ranges::count(selector, ':');
  for (std::ptrdiff_t i = 0; i < arguments; ++i)
    asked.key.arguments.push_back(
        static_cast<std::int64_t>(call.arg(static_cast<unsigned>(2 + i))));
  asked.device = nested ? static_cast<std::size_t>(*raw->integer) : *raw->device;
  const std::uint64_t back = process_.caller();
  const Trap* from = process_.trap_at(back);
  asked.from_metal = from && from->library == SystemLibrary::metal;
  if (asked.from_metal) {
    if (query->selector == "supportsFamily:") process_.recorder.metal_asks(asked.key.arguments[0]);
    return;
  }
  asked.caller = process_.name_of(back);
  const auto index = process_.recorder.query(std::move(asked));
  if (!index) return;
  Machine& machine = process_.machine;
  const std::uint64_t stack = machine.sp() + (machine.arch() == SimArch::x86_64 ? 8 : 0);
  machine.watch_return(back, stack, [this, index = *index, type = query->type] {
    const std::uint64_t result = process_.machine.result();
    // Only the low byte of a BOOL is defined.
    if (type == AnswerType::boolean) process_.recorder.answered(index, result & 0xff);
    if (type == AnswerType::integer)
      process_.recorder.answered(index, static_cast<std::int64_t>(result));
    if (type == AnswerType::text)
      process_.recorder.answered_text(index, process_.string_of(result).value_or(""));
  });
}

}  // namespace metaldoctor
