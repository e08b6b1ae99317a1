#include "scanners/code/ladders.h"

#include <optional>

namespace metaldoctor {
namespace {

constexpr std::size_t kMinimum = 3;
constexpr int kMaxBetween = 6;  // empty blocks between two steps

class LadderFinder {
 public:
  LadderFinder(const FunctionTrace& trace, const Expressions& expressions)
      : trace_(trace), expressions_(expressions) {}

  std::vector<LadderRun> find() const {
    std::vector<LadderRun> out;
    LadderRun run;
    std::int64_t step = 0;
    const auto close = [&] {
      if (run.calls.size() >= kMinimum) out.push_back(run);
      run = {};
      step = 0;
    };
    for (std::size_t i = 0; i < trace_.calls.size(); ++i) {
      const auto value = argument(i);
      if (!value) continue;
      if (!run.calls.empty()) {
        const std::int64_t difference = *value - run.last;
        const bool fits = (difference == 1 || difference == -1) && (!step || difference == step) &&
                          same_query(run.calls.back(), i) && leads_to(run.calls.back(), i);
        if (!fits)
          close();
        else
          step = difference;
      }
      if (run.calls.empty()) run.first = *value;
      run.calls.push_back(i);
      run.last = *value;
    }
    close();
    return out;
  }

 private:
  std::optional<std::int64_t> argument(std::size_t call) const {
    const CallEvent& event = trace_.calls[call];
    if (!event.target->selector || event.target->selector->role != SelectorRole::query ||
        event.target->selector->integer_arguments != 1 || !is_number(event.arguments[2]))
      return std::nullopt;
    return event.arguments[2].offset;
  }

  bool same_query(std::size_t a, std::size_t b) const {
    return trace_.calls[a].target->selector->query == trace_.calls[b].target->selector->query;
  }

  std::uint32_t block_of(std::size_t call) const {
    return trace_.flow.block_at(trace_.code, trace_.calls[call].address);
  }

  /// Whether the branch after call `a` goes to call `b` when the answer is no.
  bool leads_to(std::size_t a, std::size_t b) const {
    const std::uint32_t from = block_of(a), to = block_of(b);
    const Block& block = trace_.flow.blocks[from];
    const ExprId condition = trace_.conditions[from];
    if (!block.conditional || condition == kNoExpr) return false;
    std::uint32_t next = 0;
    if (condition == trace_.calls[a].expr)
      next = block.successors[1];
    else if (expressions_.kind(condition) == ExprKind::negation)
      next = block.successors[0];
    else
      return false;
    for (int i = 0; i < kMaxBetween && next != to; ++i) {
      if (trace_.flow.blocks[next].successors.size() != 1) return false;
      next = trace_.flow.blocks[next].successors[0];
    }
    return next == to;
  }

  const FunctionTrace& trace_;
  const Expressions& expressions_;
};

}  // namespace

std::vector<LadderRun> find_ladders(const FunctionTrace& trace, const Expressions& expressions) {
  return LadderFinder(trace, expressions).find();
}

}  // namespace metaldoctor
