// Calls of functions of the image: wrappers ask for their callers, leaves are executed in place.
#include <algorithm>

#include "scanners/code/interpreter.h"
#include "scanners/code/leaves.h"
#include "scanners/code/tables_in_code.h"

namespace metaldoctor {
namespace {

constexpr std::size_t kMaxLeaf = 12;        // instructions
constexpr std::size_t kMaxKnown = 200'000;  // leaves of an image
constexpr int kMaxDepth = 4;

/// What a summary that registers selectors stands for.
const Function kRegisters{"", FunctionRole::register_selector};
const Target kRegistering{nullptr, &kRegisters, {}, false, false, Route::function};

bool leaves_function(Op op) {
  return op == Op::ret || op == Op::b || op == Op::br;
}

bool stays_straight(Op op) {
  switch (op) {
    case Op::bl:
    case Op::blr:
    case Op::b_cond:
    case Op::cbz:
    case Op::cbnz:
    case Op::tbz:
    case Op::tbnz:
    case Op::trap:
      return false;
    default:
      return true;
  }
}

}  // namespace

const std::vector<Insn>* Leaves::at(std::uint64_t address) {
  auto found = known_.find(address);
  if (found == known_.end()) {
    if (known_.size() > kMaxKnown) return nullptr;
    found = known_.emplace(address, read(address)).first;
  }
  return found->second.empty() ? nullptr : &found->second;
}

std::vector<Insn> Leaves::read(std::uint64_t address) {
  std::vector<Insn> steps;
  const Section* section = program_.image().section_at(address);
  const auto bytes = program_.image().bytes_from(address);
  if (!section || !section->is_code() || !bytes || program_.image().is_object()) return {};
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < kMaxLeaf && at < bytes->size(); ++i) {
    at += decoder_.decode_one(bytes->subspan(at), address + at, steps);
    const Op last = steps.back().op;
    if (leaves_function(last)) return steps;
    if (!stays_straight(last)) return {};
    // `add x0, x0, #k; ret` stays a call: readers of fields are found by it (fields.h).
    const bool accessor = i == 0 && last == Op::add && steps[0].rd == steps[0].rn &&
                          steps[0].rd == program_.arch().arguments[0];
    if (accessor) return {};
  }
  return {};
}

/// Executes a leaf; false if the function is none. Its own events are not the caller's, except a
/// message whose selector the caller chose.
bool Interpreter::execute_leaf(MachineState& state, const Insn& call, std::uint64_t address) {
  const std::vector<Insn>* steps = depth_ < kMaxDepth ? leaves_.at(address) : nullptr;
  if (!steps) return false;
  const bool outer = depth_++ == 0;
  const bool recording = recording_;
  if (outer) {
    outer_call_ = &call;
    offered_.clear();
    for (const AbstractValue& value : state.regs)
      if (value.kind == AbstractValue::Kind::target) offered_.push_back(value.target());
  }
  recording_ = false;
  for (const Insn& step : *steps) {
    if (step.op == Op::ret) break;
    if (leaves_function(step.op)) {
      // A jump inside the traced function is one out of the leaf all the same.
      recording_ = recording && chosen_by_caller(state, step);
      Insn jump = step;
      if (recording_) {  // what the caller sees is a call
        jump.address = outer_call_->address;
        if (outer_call_->op == Op::bl || outer_call_->op == Op::blr)
          jump.op = step.op == Op::b ? Op::bl : Op::blr;
      }
      this->call(state, jump);
      break;
    }
    this->step(state, step);
  }
  recording_ = recording;
  --depth_;
  return true;
}

/// A jump to objc_msgSend with a selector that the caller had, or on to another leaf.
bool Interpreter::chosen_by_caller(const MachineState& state, const Insn& jump) const {
  const Callee to = callee(state, jump);
  if (!to.target) return program_.summary(to.address) == nullptr;
  const FunctionRole role = to.target->function ? to.target->function->role : FunctionRole::other;
  if (role != FunctionRole::message && role != FunctionRole::message_structure) return false;
  const AbstractValue selector = argument(state, role == FunctionRole::message_structure ? 2 : 1);
  return selector.kind == AbstractValue::Kind::target &&
         std::find(offered_.begin(), offered_.end(), selector.target()) != offered_.end();
}

void Interpreter::local_call(MachineState& state, const Insn& insn, std::uint64_t address,
                             bool tail) {
  if (const Summary* summary = program_.summary(address))
    return summarised_call(state, insn, address, *summary, tail);
  if (address && execute_leaf(state, insn, address)) return;
  clobber(state, insn, true);
}

/// The elements of the table that a caller hands over, if it and its length are constants. Where
/// they are this function's parameters, that goes on to its own callers.
AbstractValue Interpreter::table_argument(const MachineState& state, const Summary::Argument& from,
                                          const AbstractValue& table, CallEvent& event) const {
  AbstractValue count = number(from.count);
  if (from.count_parameter) {
    if (*from.count_parameter >= arch_.argument_count) return {};
    count = argument(state, *from.count_parameter);
  }
  const auto parameter = [&](const AbstractValue& value) {
    const bool is = is_based(value) && values_.base(value.base).kind == Base::Kind::parameter;
    return is ? std::optional(static_cast<unsigned>(values_.base(value.base).at)) : std::nullopt;
  };
  if (const auto pointer = parameter(table)) {
    if (is_number(count))
      event.table = Summary::Argument{table.offset, pointer, true, {}, count.offset};
    else if (const auto length = parameter(count); length && count.offset == 0)
      event.table = Summary::Argument{table.offset, pointer, true, length};
    return {};
  }
  if (!is_number(table) || !is_number(count) || count.offset < 1) return {};
  auto elements = table_elements(program_, static_cast<std::uint64_t>(table.offset),
                                 static_cast<std::size_t>(count.offset));
  if (!elements) return {};
  if (elements->size() == 1) return number(elements->front());
  AbstractValue out;
  out.kind = AbstractValue::Kind::set;
  out.id = values_.set(std::move(*elements));
  return out;
}

/// What a summarised function does, with this caller's registers.
void Interpreter::summarised_call(MachineState& state, const Insn& insn, std::uint64_t address,
                                  const Summary& summary, bool tail) {
  const MachineState before = state;
  clobber(state, insn, summary.asks.empty());
  AbstractValue& result = state.regs[arch_.result];
  if (summary.gives) result = held(summary.gives);
  if (summary.registers && *summary.registers < arch_.argument_count) {
    CallEvent event;
    event.address = insn.address;
    event.target = &kRegistering;
    event.tail = tail;
    event.arguments[0] = argument(before, *summary.registers);
    if (const auto text = text_of(event.arguments[0])) result = held(program_.registered(*text));
    note(std::move(event));
  }
  for (const Summary::Ask& ask : summary.asks) {
    CallEvent event;
    event.address = insn.address;
    event.target = ask.target;
    event.route = summary.thunk ? Route::thunk : Route::wrapper;
    event.callee = address;
    event.tail = tail;
    if (ask.receiver && *ask.receiver < arch_.argument_count)
      event.arguments[0] = argument(before, *ask.receiver);
    event.receiver_is_device = ask.receiver_is_device || is_device(event.arguments[0]);
    for (std::size_t i = 0; i < ask.arguments.size() && 2 + i < event.arguments.size(); ++i) {
      const Summary::Argument& from = ask.arguments[i];
      AbstractValue value = number(from.number);
      if (from.parameter && *from.parameter < arch_.argument_count)
        value = combine(Op::add, argument(before, *from.parameter), value, true);
      if (from.table) value = table_argument(before, from, value, event);
      event.arguments[2 + i] = value;
    }
    const AbstractValue answered = answer(state, event);
    if (summary.returns_answer) {
      state.regs[arch_.result] = answered;
      if (answered.kind == AbstractValue::Kind::expr) event.expr = answered.id;
    }
    note(std::move(event));
  }
}

}  // namespace metaldoctor
