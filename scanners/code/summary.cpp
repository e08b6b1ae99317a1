#include "scanners/code/summary.h"

#include <algorithm>

#include "scanners/code/tables_in_code.h"
#include "scanners/code/trace.h"

namespace metaldoctor {
namespace {

constexpr std::size_t kMaxAsks = 8;
constexpr std::size_t kMaxThunk = 8;  // instructions

std::optional<unsigned> parameter_of(const FunctionTrace& trace, const AbstractValue& value) {
  if (!is_based(value)) return std::nullopt;
  const Base& base = trace.values.base(value.base);
  if (base.kind != Base::Kind::parameter) return std::nullopt;
  return static_cast<unsigned>(base.at);
}

/// The integer arguments, if each is a number or comes from a parameter.
std::optional<std::vector<Summary::Argument>> arguments_of(const FunctionTrace& trace,
                                                           const CallEvent& event) {
  std::vector<Summary::Argument> out;
  const unsigned count = event.target->selector->integer_arguments;
  if (event.table) return std::vector{*event.table};
  for (unsigned i = 0; i < count && 2 + i < event.arguments.size(); ++i) {
    const AbstractValue& value = event.arguments[2 + i];
    const auto parameter = parameter_of(trace, value);
    if (const auto walk = table_walk(trace, value); walk && walk->parameter) {
      // Pointer and length are neighbours: what Rust makes of a slice, and the habit of C.
      out.push_back({walk->first, walk->parameter, true, *walk->parameter + 1});
      continue;
    }
    if (!is_number(value) && !parameter) return std::nullopt;
    out.push_back({value.offset, parameter});
  }
  return out;
}

/// A few moves and a jump to another summarised function.
bool is_thunk(const FunctionTrace& trace) {
  // What follows the jump is padding.
  const Block& block = trace.flow.blocks.front();
  return trace.begin == trace.function && block.last <= kMaxThunk && block.returns &&
         block.successors.empty() && trace.calls.size() == 1 && trace.calls[0].tail &&
         trace.calls[0].callee != 0;
}

}  // namespace

Summary summarise(const FunctionTrace& trace) {
  Summary out;
  if (trace.begin != trace.function || trace.code.empty()) return out;
  out.thunk = is_thunk(trace);
  for (const CallEvent& event : trace.calls) {
    const Target& target = *event.target;
    if (target.function && target.function->role == FunctionRole::register_selector)
      if (const auto text = parameter_of(trace, event.arguments[0]);
          text && event.arguments[0].offset == 0)
        out.registers = text;
    if (!target.selector || target.selector->role != SelectorRole::query ||
        target.selector->integer_arguments == 0)
      continue;
    const auto arguments = arguments_of(trace, event);
    if (!arguments) continue;
    const bool passes = std::any_of(arguments->begin(), arguments->end(),
                                    [](const auto& argument) { return argument.parameter; });
    if ((!passes && !out.thunk) || out.asks.size() == kMaxAsks) continue;
    Summary::Ask ask{&target, *arguments, {}, event.receiver_is_device};
    if (event.arguments[0].offset == 0) ask.receiver = parameter_of(trace, event.arguments[0]);
    out.asks.push_back(std::move(ask));
    const AbstractValue& result = trace.exit.regs[trace.result];
    out.returns_answer = out.asks.size() == 1 && event.expr != kNoExpr &&
                         result.kind == AbstractValue::Kind::expr && result.id == event.expr;
  }
  const AbstractValue& result = trace.exit.regs[trace.result];
  if (!out.registers && result.kind == AbstractValue::Kind::target && result.target() &&
      !result.target()->imported)
    out.gives = result.target();
  if (out.empty()) out.thunk = false;
  return out;
}

}  // namespace metaldoctor
