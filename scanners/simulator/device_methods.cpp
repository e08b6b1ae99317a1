#include "scanners/simulator/device_methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "scanners/simulator/call_access.h"
#include "scanners/simulator/foundation.h"

namespace metaldoctor {

/// The bodies of the methods of Metal's device classes.
struct DeviceMethods {
  static std::optional<std::size_t> device_of(Call& call) {
    const ObjcObject* object = call.process.objc.object(call.arg(0));
    if (object && object->device) return object->device;
    call.fault("is no device", call.arg(0));
    return std::nullopt;
  }
  static void event(Call& call, std::size_t device) {
    call.process.recorder.event(fmt::format("{}: {}", device, call.trap.runtime->selector));
  }

  static void initialise(Call& call) {
    if (const auto device = device_of(call)) event(call, *device);
    call.returns(call.arg(0));
  }
  static void step(Call& call) {
    if (const auto device = device_of(call)) event(call, *device);
  }
  static void init_families(Call& call) {
    const auto device = device_of(call);
    if (!device) return;
    event(call, *device);
    call.process.devices.ready_[*device] = true;
  }
  static void init_feature_queries(Call& call) {
    const auto device = device_of(call);
    if (!device) return;
    event(call, *device);
    // A system without that method has its families set up before.
    const ObjcObject* object = call.process.objc.object(call.arg(0));
    if (call.process.objc.lookup(*object->cls, "initGPUFamilySupport", false))
      call.process.send(call.arg(0), "initGPUFamilySupport");
    else
      call.process.devices.ready_[*device] = true;
    call.process.devices.take_snapshot(call.arg(0));
  }

  static void supports_family(Call& call) {
    const auto device = device_of(call);
    if (!device) return;
    DeviceModel& model = call.process.devices;
    if (!model.families_ready(*device)) return call.returns(0);
    const auto family = static_cast<std::int64_t>(call.arg(2));
    call.returns(model.answer(*device, {"supportsFamily:", {family}}) != 0);
  }
  static bool has_family(Call& call, std::int64_t family) {
    return call.process.send(call.arg(0), "supportsFamily:", {static_cast<std::uint64_t>(family)}) &
           0xff;
  }
  static void any_family(Call& call) {
    const auto& families = call.trap.runtime->families;
    call.returns(
        std::ranges::any_of(families, [&](std::int64_t f) { return has_family(call, f); }));
  }
  static void not_family(Call& call) {
    call.returns(!has_family(call, call.trap.runtime->families.at(0)));
  }
  static void supports_feature_set(Call& call) {
    call.returns(
        call.process.send(call.arg(0), "deviceOrFeatureProfileSupportsFeatureSet:", {call.arg(2)}) &
        0xff);
  }
  /// The driver's word, or the family that the set maps to - asked live, so an override of
  /// supportsFamily: shows here too.
  static void device_or_profile(Call& call) {
    const auto device = device_of(call);
    if (!device) return;
    Process& process = call.process;
    const auto set = static_cast<std::int64_t>(call.arg(2));
    const Value* known = process.devices.find_answer(*device, {"supportsFeatureSet:", {set}});
    const bool* captured = known ? std::get_if<bool>(known) : nullptr;
    const bool driver =
        process.send(call.arg(0), "deviceSupportsFeatureSet:", {call.arg(2)}) & 0xff;
    const FeatureSet* row = process.tables.feature_set(set);
    const Family* family = row && row->family ? process.tables.family(*row->family) : nullptr;
    if (!family) {
      if (!captured) process.devices.answer(*device, {"supportsFeatureSet:", {set}});
      return call.returns(driver || (captured && *captured));
    }
    const Value* stock = process.devices.find_answer(*device, {"supportsFamily:", {family->value}});
    const bool* before = stock ? std::get_if<bool>(stock) : nullptr;
    const bool now = has_family(call, family->value);
    if (captured && before && *before == now) return call.returns(*captured);
    call.returns(driver || now);
  }
  static void no(Call& call) { call.returns(0); }

  static QueryKey key_of(Call& call) {
    const std::string& selector = call.trap.runtime->selector;
    QueryKey key{selector, {}};
    const auto arguments = std::ranges::count(selector, ':');
    for (std::ptrdiff_t i = 0; i < arguments; ++i)
      key.arguments.push_back(static_cast<std::int64_t>(call.arg(static_cast<unsigned>(2 + i))));
    if (const Query* query = call.process.tables.query(selector)) key.query = query->selector;
    return key;
  }
  /// {width, height, depth}: as many numbers as the capture's text holds.
  static std::array<std::uint64_t, 3> size_answer(Call& call, std::size_t device) {
    const std::string& selector = call.trap.runtime->selector;
    const Value* value = call.process.devices.find_answer(device, {selector, {}});
    const std::string* text = value ? std::get_if<std::string>(value) : nullptr;
    std::array<std::uint64_t, 3> size{};
    std::size_t found = 0;
    for (std::size_t i = 0; text && i < text->size() && found < 3;) {
      const auto [end, error] =
          std::from_chars(text->data() + i, text->data() + text->size(), size[found]);
      if (error == std::errc{}) ++found;
      i = static_cast<std::size_t>(std::max(end, text->data() + i + 1) - text->data());
    }
    if (found == 3) return size;
    // What every Apple GPU of the feature tables has.
    call.process.assume(
        fmt::format("device {}: {} is unknown, 1024 each was given", device, selector));
    return {1024, 1024, 1024};
  }
  static void answer(Call& call) {
    const auto device = device_of(call);
    if (!device) return;
    Process& process = call.process;
    const RuntimeMethod& method = *call.trap.runtime;
    switch (method.types[0]) {
      case 'v':
        return;
      case '{':
        return call.returns_structure(size_answer(call, *device));
      case '@':
        break;
      default:
        return call.returns(
            static_cast<std::uint64_t>(process.devices.answer(*device, key_of(call))));
    }
    if (method.selector == "architecture") return architecture(call);
    const Query* query = process.tables.query(method.selector);
    if (query && query->type == AnswerType::text)
      return call.returns(
          process.new_string(process.devices.text_answer(*device, query->selector)));
    process.assume(fmt::format("device {}: {} is nil", *device, method.selector));
    call.returns(0);
  }
  static void architecture(Call& call) {
    ObjcObject* self = call.process.objc.object(call.arg(0));
    const std::size_t device = *self->device;
    std::uint64_t& made = self->fields["architecture"];
    if (!made) {
      ObjcClass* cls = call.process.objc.find("MTLArchitecture");
      ObjcObject* object =
          cls ? call.process.objc.create(*cls, fmt::format("architecture of device {}", device))
              : nullptr;
      if (!object) return call.returns(0);
      object->integer = static_cast<std::int64_t>(device);
      made = object->address;
    }
    call.returns(made);
  }
  static void architecture_name(Call& call) {
    const ObjcObject* self = call.process.objc.object(call.arg(0));
    const auto device = static_cast<std::size_t>(self ? self->integer.value_or(0) : 0);
    call.returns(
        call.process.new_string(call.process.devices.text_answer(device, "architecture.name")));
  }

  static void wrapper(Call& call) {
    const ObjcObject* self = call.process.objc.object(call.arg(0));
    const bool base = call.trap.cls->name == "_MTLDevice";
    const auto set = self ? self->fields.find("_deviceWrapper") : decltype(self->fields.end()){};
    if (base || !self) return call.returns(0);
    call.returns(set == self->fields.end() ? call.arg(0) : set->second);
  }
  static void set_wrapper(Call& call) {
    if (ObjcObject* self = call.process.objc.object(call.arg(0));
        self && call.trap.cls->name != "_MTLDevice")
      self->fields["_deviceWrapper"] = call.arg(2);
  }
  static void base(Call& call) {
    const ObjcObject* self = call.process.objc.object(call.arg(0));
    call.returns(self ? self->base : 0);
  }
  static void forward(Call& call) {
    const ObjcObject* self = call.process.objc.object(call.arg(0));
    if (!self || !self->base) return call.fault("is no wrapper", call.arg(0));
    call.set_arg(0, self->base);
    dispatch_message(call, nullptr, /*quiet=*/true);
  }

  /// Residency sets fail on a paravirtual device; captures say so by the fact rset_ok.
  static void residency_set(Call& call) {
    const auto device = device_of(call);
    if (!device) return;
    Process& process = call.process;
    const CapturedFact* fact = process.request.devices[*device].capture.fact("rset_ok");
    const bool* known = fact ? std::get_if<bool>(&fact->value) : nullptr;
    if (!known)
      process.assume(
          fmt::format("device {}: whether residency sets work is unknown, they do here", *device));
    if (!known || *known)
      return call.returns(process.new_object("NSObject", "residency set")->address);
    const std::uint64_t place = call.arg(3);
    if (place)
      call.store(place, process.new_object("NSError", "error of newResidencySet")->address);
    call.returns(0);
  }
  static void residency_set_validated(Call& call) {
    if (has_family(call, 1006)) return forward(call);
    call.process.stop("abort", "Metal API validation: residency sets need supportsFamily: 1006",
                      call.process.caller());
  }
};

void (*device_method_handler(std::string_view does))(Call&) {
  struct Row {
    std::string_view does;
    void (*handler)(Call&);
  };
  static constexpr std::array<Row, 19> rows = {{
      {"answer", DeviceMethods::answer},
      {"supports-family", DeviceMethods::supports_family},
      {"supports-feature-set", DeviceMethods::supports_feature_set},
      {"device-or-profile-feature-set", DeviceMethods::device_or_profile},
      {"device-feature-set", DeviceMethods::no},
      {"initialise", DeviceMethods::initialise},
      {"init-limits", DeviceMethods::step},
      {"init-feature-queries", DeviceMethods::init_feature_queries},
      {"init-families", DeviceMethods::init_families},
      {"nothing", DeviceMethods::step},
      {"wrapper", DeviceMethods::wrapper},
      {"set-wrapper", DeviceMethods::set_wrapper},
      {"not-family", DeviceMethods::not_family},
      {"any-family", DeviceMethods::any_family},
      {"forward", DeviceMethods::forward},
      {"base", DeviceMethods::base},
      {"architecture-name", DeviceMethods::architecture_name},
      {"residency-set", DeviceMethods::residency_set},
      {"residency-set-validated", DeviceMethods::residency_set_validated},
  }};
  const auto* row = std::ranges::find(rows, does, &Row::does);
  return row == rows.end() ? nullptr : row->handler;
}

}  // namespace metaldoctor
