// objc_msgSend: from a receiver and a selector to the method that answers.
#include <fmt/format.h>

#include <algorithm>

#include "scanners/simulator/call_access.h"
#include "scanners/simulator/foundation.h"

namespace metaldoctor {
namespace {

constexpr unsigned max_forwards = 8;
constexpr std::size_t shown_text = 80;

std::size_t colons(std::string_view selector) {
  return static_cast<std::size_t>(std::ranges::count(selector, ':'));
}

void note_message(Call& call, const ObjcClass& cls, bool is_class, std::string_view selector) {
  Process& process = call.process;
  if (!process.images.at(process.caller())) return;
  std::string text = fmt::format("{}[{} {}]", is_class ? "+" : "-", cls.name, selector);
  for (std::size_t i = 0; i < colons(selector); ++i) {
    const auto argument = process.string_of(call.arg(static_cast<unsigned>(2 + i)));
    if (argument) text += fmt::format(" '{}'", argument->substr(0, shown_text));
  }
  process.recorder.message(std::move(text));
}

/// Error out-parameters are written nil before anything else: callers leave them uninitialised.
void clear_error(Call& call, std::string_view selector) {
  if (!selector.ends_with("error:") && !selector.ends_with("Error:")) return;
  const std::uint64_t place = call.arg(static_cast<unsigned>(1 + colons(selector)));
  if (place) call.store<std::uint64_t>(place, 0);
}

std::string first_text(Call& call, std::string_view selector) {
  if (colons(selector) == 0) return {};
  const auto text = call.process.string_of(call.arg(2));
  return text ? fmt::format(" '{}'", text->substr(0, shown_text)) : std::string{};
}

void return_object(Call& call, const ObjcObject* receiver, std::string_view selector, bool creates,
                   std::string_view cls = "NSObject") {
  Process& process = call.process;
  // A getter gives the same object every time.
  if (receiver && !creates) {
    const auto field = receiver->fields.find(std::string(selector));
    if (field != receiver->fields.end()) return call.returns(field->second);
  }
  ObjcObject* made =
      process.new_object(cls, fmt::format("{}{}", selector, first_text(call, selector)));
  const std::uint64_t address = made->address;
  if (receiver && !creates)
    process.objc.object(receiver->address)->fields[std::string(selector)] = address;
  call.returns(address);
}

void answer_by_row(Call& call, const ObjcObject* receiver, std::string_view selector,
                   const SelectorRow& row) {
  using Returns = SelectorRow::Returns;
  using Role = SelectorRow::Role;
  if (row.role == Role::absent) return call.returns(0);
  const std::int64_t value = row.value.value_or(0);
  if (row.returns == Returns::array) {
    call.process.assume(fmt::format("{} is empty", selector));
    return return_object(call, receiver, selector, row.role == Role::creates, "NSMutableArray");
  }
  if (row.role == Role::getter && row.returns != Returns::object && row.returns != Returns::nothing)
    call.process.assume(fmt::format("{} is {}", selector, value));
  switch (row.returns) {
    case Returns::array:
    case Returns::nothing:
      return call.returns(0);
    case Returns::object:
      return return_object(call, receiver, selector, row.role == Role::creates);
    case Returns::boolean:
    case Returns::integer:
      return call.returns(static_cast<std::uint64_t>(value));
    case Returns::floating:
      return call.returns_real(static_cast<double>(value));
    case Returns::pointer: {
      ObjcObject* object = receiver ? call.process.objc.object(receiver->address) : nullptr;
      return call.returns(object ? object->buffer : 0);
    }
    case Returns::structure: {
      constexpr std::array<std::uint64_t, 8> zeros{};
      return call.returns_structure(std::span(zeros).first(std::min<std::size_t>(row.size / 8, 8)));
    }
  }
}

/// "setLabel:" -> "label"; empty if the selector is no setter.
std::string property_of(std::string_view selector) {
  if (!selector.starts_with("set") || colons(selector) != 1 || selector.size() < 5) return {};
  std::string name(selector.substr(3, selector.size() - 4));
  name[0] = static_cast<char>(name[0] | 0x20);
  return name;
}

/// No method: answered by the type of the selector, or said to be unknown.
void answer_by_type(Call& call, const ObjcClass& cls, bool is_class, std::uint64_t receiver,
                    const std::string& selector) {
  Process& process = call.process;
  ObjcObject* object = is_class ? nullptr : process.objc.object(receiver);
  const auto row = process.runtime.selectors.find(selector);
  if (const std::string property = property_of(selector); object && !property.empty()) {
    object->fields[property] = call.arg(2);
    return call.returns(0);
  }
  if (object)
    if (const auto set = object->fields.find(selector); set != object->fields.end())
      return call.returns(set->second);
  if (row != process.runtime.selectors.end())
    return answer_by_row(call, object, selector, row->second);
  // Cocoa's method families: init returns its receiver.
  if (selector.starts_with("init") && !is_class) return call.returns(receiver);
  process.assume(fmt::format("what {}[{} {}] returns is not known: an object was given",
                             is_class ? "+" : "-", cls.name, selector));
  return_object(call, object, selector, true);
}

}  // namespace

ObjcClass* class_of(Process& process, std::uint64_t receiver, bool& is_class) {
  bool meta = false;
  is_class = false;
  if (ObjcClass* cls = process.objc.class_at(receiver, &meta)) {
    is_class = true;
    return cls;
  }
  if (const ObjcObject* object = process.objc.object(receiver)) return object->cls;
  // Constants in images and blocks say what they are in their first word.
  const auto isa = process.memory.load<std::uint64_t>(receiver);
  return isa ? process.objc.class_at(*isa) : nullptr;
}

bool responds(Process& process, std::uint64_t receiver, std::string_view selector) {
  for (unsigned i = 0; i < max_forwards && receiver; ++i) {
    bool is_class = false;
    ObjcClass* cls = class_of(process, receiver, is_class);
    if (!cls) return false;
    if (process.objc.lookup(*cls, selector, is_class)) return true;
    const ObjcObject* object = process.objc.object(receiver);
    if (object && object->device) {
      const auto row = process.runtime.selectors.find(std::string(selector));
      return row != process.runtime.selectors.end() && row->second.on == "MTLDevice";
    }
    receiver = object ? object->base : 0;
  }
  return false;
}

void dispatch_message(Call& call, ObjcClass* start, bool quiet) {
  Process& process = call.process;
  const auto selector = process.objc.selector_name(call.arg(1));
  if (!selector) return call.fault("is no selector", call.arg(1));
  for (unsigned i = 0; i < max_forwards; ++i) {
    const std::uint64_t receiver = call.arg(0);
    bool is_class = false;
    ObjcClass* cls = class_of(process, receiver, is_class);
    if (!cls)
      return process.stop("bad-receiver",
                          fmt::format("a message {} to {}, which is no object", *selector,
                                      process.name_of(receiver)),
                          process.caller());
    ObjcObject* object = process.objc.object(receiver);
    if (i == 0 && !quiet) {
      note_message(call, *cls, is_class, *selector);
      if (object) process.devices.note_question(*object, *selector, call);
    }
    ObjcMethod* method = process.objc.lookup(start ? *start : *cls, *selector, is_class);
    if (!method) {
      if (object && object->base) {  // message forwarding
        call.set_arg(0, object->base);
        start = nullptr;
        continue;
      }
      clear_error(call, *selector);
      return answer_by_type(call, *cls, is_class, receiver, *selector);
    }
    Trap* trap = process.trap_at(method->imp);
    if (!trap) return call.jump(method->imp);
    clear_error(call, *selector);
    ++trap->calls;
    Call inner(process, *trap, call.large_structure() ? 1 : 0);
    if (trap->method) trap->method(inner);
    if (inner.jumped()) call.jump(process.machine.pc());
    return;
  }
  process.stop("bad-receiver", "a message is forwarded in a circle", process.caller());
}

}  // namespace metaldoctor
