// Calls of the interpreter: what they ask, what they return, what they may change.
#include <fmt/format.h>

#include <algorithm>

#include "scanners/code/interpreter.h"

namespace metaldoctor {

Interpreter::Callee Interpreter::callee(const MachineState& state, const Insn& insn) const {
  Callee out;
  if (insn.op == Op::blr || insn.op == Op::br) {
    const AbstractValue value = get(state, insn.rn);
    if (value.kind == AbstractValue::Kind::target) out.target = value.target();
    if (is_number(value)) out.address = static_cast<std::uint64_t>(value.offset);
    return out;
  }
  if (const Relocation* relocation = program_.relocation(insn)) {
    out.target = relocation->undefined ? program_.symbol_target(relocation->symbol) : nullptr;
    out.address = relocation->target;
    return out;
  }
  out.target = program_.stub(insn.target);
  if (!out.target) out.address = insn.target;
  return out;
}

bool Interpreter::ends_here(const Insn& insn) const {
  if (insn.op != Op::bl) return false;
  const Target* target = callee(MachineState{}, insn).target;
  return target && target->function && target->function->role == FunctionRole::no_return;
}

std::optional<std::string_view> Interpreter::text_of(const AbstractValue& value) const {
  constexpr std::size_t kLongest = 256;  // texts are repeated in every expression they are part of
  if (!is_number(value)) return std::nullopt;
  const auto vm = static_cast<std::uint64_t>(value.offset);
  const Section* section = program_.image().section_at(vm);
  if (!section) return std::nullopt;
  std::optional<std::string_view> text;
  if (section->name != "__cfstring") {
    text = program_.image().string_at(vm);
  } else if (!program_.image().is_object()) {
    text = cfstring_at(program_.image(), program_.fixups(), vm);
  } else {
    // Object files: the pointer to the characters is a relocation, or needs none but a move.
    const Relocation* to = program_.relocation(vm + 16);
    const auto raw = program_.image().value_at<std::uint64_t>(vm + 16);
    text = program_.image().string_at(to ? to->target : raw.value_or(0));
  }
  return text && text->size() <= kLongest ? text : std::nullopt;
}

bool Interpreter::is_device(const AbstractValue& value) const {
  return is_based(value) && value.offset == 0 && values_.base(value.base).device;
}

void Interpreter::note(CallEvent event) {
  if (recording_) out_.calls.push_back(std::move(event));
}

void Interpreter::branch(MachineState& state, const Insn& insn) {
  const bool leaves = insn.op == Op::br ||
                      (insn.op == Op::b && (insn.target < out_.begin || insn.target >= out_.end));
  if (leaves) call(state, insn);
}

void Interpreter::call(MachineState& state, const Insn& insn) {
  const bool tail = insn.op == Op::b || insn.op == Op::br;
  const Callee to = callee(state, insn);
  if (recording_) out_.mentions.push_back({insn.address, to.target ? 0 : to.address, to.target});
  if (!to.target) return local_call(state, insn, to.address, tail);
  if (to.target->sends) return message(state, insn, *to.target, to.target->route, tail);
  const FunctionRole role = to.target->function ? to.target->function->role : FunctionRole::other;
  const bool structure = role == FunctionRole::message_structure;
  const bool sends = role == FunctionRole::message || structure;
  const AbstractValue selector = argument(state, structure ? 2 : 1);
  if (sends && selector.kind == AbstractValue::Kind::target && !selector.target()->imported) {
    if (recording_) out_.mentions.push_back({insn.address, 0, selector.target()});
    return message(state, insn, *selector.target(), selector.target()->route, tail,
                   structure ? 1 : 0);
  }
  function_call(state, insn, *to.target, tail);
}

namespace {

void make_stale(MachineState& state, std::uint32_t base) {
  const auto fresh = [&](const Cell& cell) { return cell.base == base && !cell.value.stale; };
  const auto& cells = state.memory.cells();
  if (!std::any_of(cells.begin(), cells.end(), fresh)) return;
  for (Cell& cell : state.memory.edit())
    if (cell.base == base) cell.value.stale = true;
}

}  // namespace

/// What every call may change: the registers of the calling convention, the part of the stack it
/// was given, and, through code of this image, fields and globals.
void Interpreter::clobber(MachineState& state, const Insn& insn, bool local_code) {
  constexpr std::int64_t kLocalBytes = 1024;
  const auto keeps = [](const AbstractValue& value) {
    return is_based(value) || value.kind == AbstractValue::Kind::target;
  };
  for (unsigned i = 0; i < arch_.argument_count; ++i) {
    AbstractValue passed = argument(state, i);
    if (is_spread(passed))  // from the first of its places on
      passed = address(passed.base, values_.set(static_cast<std::uint32_t>(passed.offset)).front());
    if (!is_based(passed) &&
        !(is_number(passed) && program_.image().maps(static_cast<std::uint64_t>(passed.offset))))
      continue;
    if (passed.base == 1) {
      state.forget([&](const Cell& cell) {
        return cell.base == 1 && cell.offset >= passed.offset &&
               cell.offset - passed.offset < kLocalBytes && !keeps(cell.value);
      });
    } else if (passed.base != 0) {
      make_stale(state, passed.base);
    }
  }
  if (local_code) make_stale(state, 0);
  // Numbers in memory would become wrong constants; pointers and answers are kept, as stale.
  if (local_code)
    state.forget([](const Cell& cell) {
      return cell.base != 1 && cell.value.stale &&
             (is_number(cell.value) || cell.value.kind == AbstractValue::Kind::set);
    });
  for (std::uint8_t reg = 0; reg < 32; ++reg)
    if (arch_.clobbered >> reg & 1) state.regs[reg] = {};
  state.flags = {};
  Base base;
  base.kind = Base::Kind::result;
  base.at = insn.address;
  state.regs[arch_.result] = address(values_.base(base), 0);
}

/// `skipped`: argument registers before the receiver.
CallEvent Interpreter::event_at(const MachineState& state, const Insn& insn, const Target& target,
                                bool tail, unsigned skipped) const {
  CallEvent event;
  event.address = insn.address;
  event.target = &target;
  event.tail = tail;
  for (unsigned i = 0; i < event.arguments.size() && i + skipped < arch_.argument_count; ++i)
    event.arguments[i] = argument(state, i + skipped);
  return event;
}

void Interpreter::function_call(MachineState& state, const Insn& insn, const Target& target,
                                bool tail) {
  CallEvent event = event_at(state, insn, target, tail, 0);
  event.route = target.route;
  if (!target.function) {
    clobber(state, insn, false);
    return;
  }
  const AbstractValue first = event.arguments[0];
  const auto text = text_of(first);
  clobber(state, insn, false);
  AbstractValue& result = state.regs[arch_.result];
  switch (target.function->role) {
    case FunctionRole::device:
      values_.mark_device(result.base);
      break;
    case FunctionRole::device_list:
      values_.mark_device_list(result.base);
      break;
    case FunctionRole::allocator:
      values_.mark_fresh(result.base);
      break;
    case FunctionRole::environment:
      if (text) result = expression(expressions_.env(*text));
      break;
    case FunctionRole::register_selector:
      if (text) result = held(program_.registered(*text));
      break;
    case FunctionRole::look_up:
      if (const auto name = text_of(event.arguments[1]))
        if (const Target* found = program_.looked_up(*name)) result = held(found);
      break;
    case FunctionRole::same_object:
      result = first;
      break;
    case FunctionRole::os_version: {
      const auto part = [&](unsigned i) {
        return is_number(event.arguments[i]) ? event.arguments[i].offset : -1;
      };
      // (platform, major, minor, patch), or without the platform in the older form.
      const unsigned at = target.name == "___isPlatformVersionAtLeast" ? 1 : 0;
      if (part(at) < 0 || part(at + 1) < 0) break;
      event.about = fmt::format("{}.{}", part(at), part(at + 1));
      if (at == 0 || part(0) == 1)
        result = expression(expressions_.os(fmt::format("{}, {}", part(at), part(at + 1))));
      break;
    }
    default:
      named_call(state, event, text);
      break;
  }
  if (result.kind == AbstractValue::Kind::expr) event.expr = result.id;
  note(std::move(event));
}

/// Calls that are listed with what they name: compared texts, selectors, host questions.
void Interpreter::named_call(MachineState& state, CallEvent& event,
                             std::optional<std::string_view> first) {
  switch (event.target->function->role) {
    case FunctionRole::text_equals:
    case FunctionRole::text_contains:
    case FunctionRole::text_other:
      state.regs[arch_.result] = text_test(state, event, event.arguments[1]);
      return;
    case FunctionRole::responds:
      event.text = queried_selector(event.arguments[1]);
      return;
    case FunctionRole::host_name:
    case FunctionRole::host:
      event.text = first.value_or(std::string_view{});
      return;
    default:
      return;
  }
}

void Interpreter::message(MachineState& state, const Insn& insn, const Target& selector,
                          Route route, bool tail, unsigned skipped) {
  CallEvent event = event_at(state, insn, selector, tail, skipped);
  event.route = route;
  event.receiver_is_device = is_device(event.arguments[0]);
  const AbstractValue receiver = event.arguments[0];
  if (!selector.selector) {
    clobber(state, insn, false);
    return;
  }
  clobber(state, insn, false);
  AbstractValue& result = state.regs[arch_.result];
  switch (selector.selector->role) {
    case SelectorRole::query:
      result = answer(state, event);
      break;
    case SelectorRole::text_contains:
    case SelectorRole::text_equals:
    case SelectorRole::text_other:
      result = text_test(state, event, event.arguments[2]);
      break;
    case SelectorRole::responds:
      event.text = queried_selector(event.arguments[2]);
      break;
    case SelectorRole::text_view:
      if (receiver.kind == AbstractValue::Kind::expr) result = receiver;
      break;
    case SelectorRole::element:
      if (is_based(receiver) && values_.base(receiver.base).device_list)
        values_.mark_device(result.base);
      break;
    default:
      break;
  }
  if (result.kind == AbstractValue::Kind::expr) event.expr = result.id;
  note(std::move(event));
}

AbstractValue Interpreter::answer(MachineState& state, const CallEvent& event) {
  const Selector& selector = *event.target->selector;
  const AbstractValue receiver = event.arguments[0];
  // `name` of the object that `architecture` gave is a query of its own.
  if (selector.name == "name" && receiver.kind == AbstractValue::Kind::expr &&
      expressions_.print(receiver.id) == "answer('architecture')")
    return expression(expressions_.answer({"architecture.name", {}}, false));
  // The same where the device was not proven: only Metal has objects with both.
  if (selector.name == "name" && is_based(receiver) && receiver.offset == 0 &&
      values_.base(receiver.base).architecture)
    return expression(expressions_.answer({"architecture.name", {}}, false));
  if (selector.ambiguous && !event.receiver_is_device) {
    const AbstractValue result = state.regs[arch_.result];
    if (selector.name == "architecture") values_.mark_architecture(result.base);
    return result;
  }
  if (!selector.ambiguous && is_based(receiver) && receiver.offset == 0)
    values_.mark_device(receiver.base);
  // Structures and objects are no values to compute with; `architecture` is asked for its name.
  const bool object = selector.answer == AnswerType::object && selector.query != "architecture";
  if (object || selector.answer == AnswerType::structure) return state.regs[arch_.result];
  QueryKey key{selector.query, {}};
  for (unsigned i = 0; i < selector.integer_arguments && i < 4; ++i) {
    const AbstractValue& argument = event.arguments[2 + i];
    if (!is_number(argument))
      return expression(expressions_.some_answer(
          fmt::format("{} with a computed argument at {:#x}", selector.query, event.address)));
    key.arguments.push_back(argument.offset);
  }
  return expression(expressions_.answer(key, selector.answer == AnswerType::boolean));
}

/// The selector that a value is, if it is that of a query.
std::string_view Interpreter::queried_selector(const AbstractValue& value) const {
  const Target* target = value.kind == AbstractValue::Kind::target ? value.target() : nullptr;
  const bool query = target && !target->imported && target->selector &&
                     target->selector->role == SelectorRole::query;
  return query ? target->name : std::string_view{};
}

/// A comparison of an answer that is a text.
AbstractValue Interpreter::text_test(MachineState& state, CallEvent& event,
                                     const AbstractValue& other) {
  const AbstractValue receiver = event.arguments[0];
  const auto text = text_of(other);
  const AbstractValue nothing = state.regs[arch_.result];
  if (receiver.kind != AbstractValue::Kind::expr || expressions_.is_boolean(receiver.id) || !text)
    return nothing;
  const auto answers = expressions_.answers(receiver.id);
  if (answers.empty()) return nothing;
  event.about = answers.front().query;
  event.text = *text;
  const Target& target = *event.target;
  const bool contains = target.selector ? target.selector->role == SelectorRole::text_contains
                                        : target.function->role == FunctionRole::text_contains;
  const bool equals = target.selector ? target.selector->role == SelectorRole::text_equals
                                      : target.function->role == FunctionRole::text_equals;
  if (contains) return expression(expressions_.contains(receiver.id, *text));
  if (!equals) return nothing;
  const ExprId same = expressions_.equals(receiver.id, *text);
  return expression(target.selector ? same : expressions_.negation(same));
}

}  // namespace metaldoctor
