#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "scanners/code/expression.h"
#include "scanners/code/flow.h"
#include "scanners/code/value.h"

namespace metaldoctor {

/// The state that one edge brings to a block.
struct Incoming {
  std::uint32_t from = 0;
  const MachineState* state = nullptr;
};

/// Under which conditions, seen from a dominator, control takes an edge. Conditions are
/// expressions over the branches in between; edges that go back are left out.
class PathConditions {
 public:
  PathConditions(const Flow& flow, const std::vector<ExprId>& branches, Expressions& expressions)
      : flow_(flow), branches_(branches), expressions_(expressions) {}

  /// Of the edges from `from` to `block`, seen from `dominator`; none where the region is too
  /// large to look at.
  std::optional<std::vector<ExprId>> edges(std::uint32_t dominator, std::uint32_t block,
                                           const std::vector<std::uint32_t>& from);
  /// Whether a branch between the two tests an answer, a variable or the like.
  bool interesting(std::uint32_t dominator, std::uint32_t block) const;

 private:
  ExprId edge(std::uint32_t from, std::uint32_t to, ExprId reached);

  const Flow& flow_;
  const std::vector<ExprId>& branches_;
  Expressions& expressions_;
};

/// Joins the states that reach `block`. Where they differ, a truth value becomes the condition
/// under which it holds, numbers become a set, and everything else unknown. With `widen`, whatever
/// differs becomes unknown (loop headers).
class StateJoin {
 public:
  /// `is_table` tells which numbers are addresses of constant data.
  StateJoin(const Flow& flow, const std::vector<ExprId>& branches, Expressions& expressions,
            ValueTable& values, const std::function<bool(std::int64_t)>& is_table)
      : conditions_(flow, branches, expressions),
        expressions_(expressions),
        values_(values),
        is_table_(is_table) {}

  MachineState join(std::uint32_t block, std::uint32_t dominator,
                    const std::vector<Incoming>& incoming, bool widen);

 private:
  AbstractValue merge(const std::vector<AbstractValue>& values, bool widen);
  AbstractValue moved(const std::vector<AbstractValue>& values);
  AbstractValue gate(const std::vector<AbstractValue>& values);
  AbstractValue number_set(const std::vector<AbstractValue>& values);
  void join_cells(const std::vector<Incoming>& incoming, bool widen, MachineState& out);

  PathConditions conditions_;
  Expressions& expressions_;
  ValueTable& values_;
  const std::function<bool(std::int64_t)>& is_table_;
  // Of the block being joined: computed when first needed.
  std::uint32_t block_ = 0, dominator_ = 0;
  std::vector<std::uint32_t> from_;
  std::optional<std::vector<ExprId>> edges_;
  bool edges_known_ = false, branches_matter_ = false;
};

}  // namespace metaldoctor
