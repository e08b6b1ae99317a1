#include "scanners/code/join.h"

#include <algorithm>

namespace metaldoctor {
namespace {

constexpr std::uint32_t kMaxRegion = 512;  // blocks between a dominator and a join
constexpr std::size_t kMaxNumbers = 32;

}  // namespace

ExprId PathConditions::edge(std::uint32_t from, std::uint32_t to, ExprId reached) {
  const Block& block = flow_.blocks[from];
  if (!block.conditional || block.successors[0] == block.successors[1]) return reached;
  const ExprId taken = branches_[from];
  if (taken == UINT32_MAX) return reached;
  return expressions_.both(reached,
                           block.successors[0] == to ? taken : expressions_.negation(taken));
}

bool PathConditions::interesting(std::uint32_t dominator, std::uint32_t block) const {
  const std::uint32_t first = flow_.position[dominator], last = flow_.position[block];
  if (last < first || last - first > kMaxRegion) return false;
  for (std::uint32_t i = first; i < last; ++i) {
    const ExprId condition = branches_[flow_.order[i]];
    if (condition != UINT32_MAX && expressions_.is_interesting(condition)) return true;
  }
  return false;
}

std::optional<std::vector<ExprId>> PathConditions::edges(std::uint32_t dominator,
                                                         std::uint32_t block,
                                                         const std::vector<std::uint32_t>& from) {
  const std::uint32_t first = flow_.position[dominator], last = flow_.position[block];
  if (last < first || last - first > kMaxRegion) return std::nullopt;
  const ExprId never = expressions_.constant(false);
  if (!expressions_.spend(last - first)) return std::nullopt;
  std::vector<ExprId> reached(last - first, never);
  if (!reached.empty()) reached[0] = expressions_.constant(true);
  for (std::uint32_t i = 1; i < reached.size(); ++i) {
    const std::uint32_t at = flow_.order[first + i];
    std::vector<ExprId> ways;
    for (const std::uint32_t pred : flow_.blocks[at].predecessors) {
      const std::uint32_t position = flow_.position[pred];
      if (position < first || position >= first + i || reached[position - first] == never) continue;
      ways.push_back(edge(pred, at, reached[position - first]));
    }
    reached[i] = expressions_.any_of(std::move(ways));
  }
  std::vector<ExprId> out;
  for (const std::uint32_t pred : from) {
    const std::uint32_t position = flow_.position[pred];
    if (position < first || position >= last) return std::nullopt;
    out.push_back(edge(pred, block, reached[position - first]));
  }
  return out;
}

AbstractValue StateJoin::number_set(const std::vector<AbstractValue>& values) {
  std::vector<std::int64_t> numbers;
  for (const AbstractValue& value : values) {
    if (is_number(value)) {
      numbers.push_back(value.offset);
    } else if (value.kind == AbstractValue::Kind::set) {
      const auto& more = values_.set(value.id);
      numbers.insert(numbers.end(), more.begin(), more.end());
    } else {
      return {};
    }
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  AbstractValue out;
  if (numbers.size() > kMaxNumbers) return out;
  out.kind = AbstractValue::Kind::set;
  out.id = values_.set(std::move(numbers));
  return out;
}

/// The truth value that the edges select, or unknown if the values are no truth values.
AbstractValue StateJoin::gate(const std::vector<AbstractValue>& values) {
  std::vector<ExprId> truths;
  bool stale = false;
  for (const AbstractValue& value : values) {
    stale |= value.stale;
    if (value.kind == AbstractValue::Kind::expr && expressions_.is_boolean(value.id))
      truths.push_back(value.id);
    else if (is_number(value) && (value.offset == 0 || value.offset == 1))
      truths.push_back(expressions_.constant(value.offset != 0));
    else
      return {};
  }
  // Numbers selected by branches that have nothing to do with answers are not worth the work.
  const bool any = std::any_of(truths.begin(), truths.end(),
                               [&](ExprId id) { return expressions_.is_interesting(id); });
  if (!edges_known_) {
    branches_matter_ = conditions_.interesting(dominator_, block_);
    edges_known_ = true;
    edges_.reset();
  }
  if (!any && !branches_matter_) return {};
  if (!edges_) edges_ = conditions_.edges(dominator_, block_, from_);
  if (!edges_) return {};
  // Edges that bring the same value count as one.
  std::vector<std::pair<ExprId, ExprId>> ways;  // value, condition
  for (std::size_t i = 0; i < truths.size(); ++i) {
    const auto same = std::find_if(ways.begin(), ways.end(),
                                   [&](const auto& way) { return way.first == truths[i]; });
    if (same == ways.end())
      ways.emplace_back(truths[i], (*edges_)[i]);
    else
      same->second = expressions_.either(same->second, (*edges_)[i]);
  }
  std::vector<ExprId> choices;
  if (ways.size() == 2) {
    // Exactly one edge was taken, so either side's condition decides; take what reads best.
    const auto& [a, when_a] = ways[0];
    const auto& [b, when_b] = ways[1];
    choices.push_back(expressions_.select(when_a, a, b));
    choices.push_back(expressions_.select(when_b, b, a));
  } else {
    std::vector<ExprId> sum;
    for (const auto& [value, when] : ways) sum.push_back(expressions_.both(value, when));
    choices.push_back(expressions_.any_of(std::move(sum)));
  }
  const ExprId best = *std::min_element(choices.begin(), choices.end(), [&](ExprId a, ExprId b) {
    return std::pair(expressions_.has_unknown(a), expressions_.weight(a)) <
           std::pair(expressions_.has_unknown(b), expressions_.weight(b));
  });
  if (best <= 1) return number(best);
  if (!expressions_.is_interesting(best)) return {};
  AbstractValue out = expression(best);
  out.stale = stale;
  return out;
}

/// At a loop header: a pointer that every round moves on from where it began.
AbstractValue StateJoin::moved(const std::vector<AbstractValue>& values) {
  Base walk;
  walk.kind = Base::Kind::walk;
  bool found = false;
  for (const AbstractValue& value : values) {
    if (value.kind != AbstractValue::Kind::linear) return {};
    const Base& base = values_.base(value.base);
    if (base.kind != Base::Kind::walk) continue;
    if (found && (base.parent != walk.parent || base.offset != walk.offset)) return {};
    walk.parent = base.parent, walk.offset = base.offset;
    found = true;
  }
  if (!found) {  // the first edge is the one that enters
    walk.parent = values.front().base, walk.offset = values.front().offset;
    const bool object = walk.parent > 1 || (walk.parent == 0 && is_table_(walk.offset));
    if (!object) return {};
  }
  const auto fits = [&](const AbstractValue& value) {
    return value.base == walk.parent || values_.base(value.base).kind == Base::Kind::walk;
  };
  if (!std::all_of(values.begin(), values.end(), fits)) return {};
  return address(values_.base(walk), 0);
}

AbstractValue StateJoin::merge(const std::vector<AbstractValue>& values, bool widen) {
  const bool stale =
      std::any_of(values.begin(), values.end(), [](const auto& v) { return v.stale; });
  const bool same = std::all_of(values.begin(), values.end(), [&](const AbstractValue& value) {
    AbstractValue a = value, b = values.front();
    a.stale = b.stale = false;
    return a == b;
  });
  if (same) {
    AbstractValue out = values.front();
    out.stale = stale;
    return out;
  }
  if (widen) return moved(values);
  for (const AbstractValue& value : values)
    if (value.kind == AbstractValue::Kind::unknown) return {};
  if (AbstractValue gated = gate(values); gated.kind != AbstractValue::Kind::unknown) return gated;
  return number_set(values);
}

void StateJoin::join_cells(const std::vector<Incoming>& incoming, bool widen, MachineState& out) {
  const bool shared = std::all_of(incoming.begin(), incoming.end(), [&](const Incoming& edge) {
    return edge.state->memory.same_as(incoming.front().state->memory);
  });
  if (shared) {
    out.memory = incoming.front().state->memory;
    return;
  }
  std::vector<Cell>& joined = out.memory.edit();
  joined.reserve(incoming.front().state->memory.cells().size());
  // Walk all cell lists side by side; they are sorted.
  std::vector<std::pair<const Cell*, const Cell*>> lists;
  for (const Incoming& edge : incoming) {
    const auto& cells = edge.state->memory.cells();
    lists.emplace_back(cells.data(), cells.data() + cells.size());
  }
  std::vector<AbstractValue> values;
  for (;;) {
    const Cell* least = nullptr;
    for (const auto& [at, end] : lists)
      if (at != end && (!least || at->base < least->base ||
                        (at->base == least->base && at->offset < least->offset)))
        least = at;
    if (!least) return;
    values.clear();
    bool same_size = true;
    for (auto& [at, end] : lists) {
      if (at == end || at->base != least->base || at->offset != least->offset) continue;
      same_size &= at->size == least->size;
      values.push_back(at->value);
      if (at != least) ++at;
    }
    // `least` is read below; its own list moves on last.
    for (auto& [at, end] : lists)
      if (at == least) ++at;
    Cell cell = *least;
    const bool everywhere = values.size() == incoming.size();
    // Not written on some path: a pointer or an answer in a field stays, for that is what the field
    // will hold; a number would be a guess.
    const bool agree = std::all_of(values.begin(), values.end(),
                                   [&](const AbstractValue& value) { return value == values[0]; });
    // Of memory that was just allocated nobody reads what was not written.
    const bool fresh = values_.base(cell.base).fresh && !widen;
    const bool keeps = cell.base != 1 && agree && !widen &&
                       cell.value.kind != AbstractValue::Kind::set && !is_number(cell.value);
    if (!same_size || (!everywhere && !keeps && !fresh)) continue;
    if (everywhere)
      cell.value = merge(values, widen);
    else if (!agree)
      cell.value = number_set(values);
    if (cell.value.kind != AbstractValue::Kind::unknown) joined.push_back(cell);
  }
}

MachineState StateJoin::join(std::uint32_t block, std::uint32_t dominator,
                             const std::vector<Incoming>& incoming, bool widen) {
  block_ = block;
  dominator_ = dominator;
  edges_known_ = false;
  from_.clear();
  for (const Incoming& edge : incoming) from_.push_back(edge.from);
  MachineState out;
  std::vector<AbstractValue> values(incoming.size());
  for (std::size_t reg = 0; reg < out.regs.size(); ++reg) {
    for (std::size_t i = 0; i < incoming.size(); ++i) values[i] = incoming[i].state->regs[reg];
    out.regs[reg] = merge(values, widen);
  }
  out.flags = incoming.front().state->flags;
  for (const Incoming& edge : incoming)
    if (!(edge.state->flags == out.flags)) out.flags = {};
  join_cells(incoming, widen, out);
  return out;
}

}  // namespace metaldoctor
