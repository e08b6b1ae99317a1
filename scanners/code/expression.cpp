#include "scanners/code/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace metaldoctor {
namespace {

constexpr std::uint32_t kMaxWeight = 160;
constexpr std::size_t kMaxNodes = 200'000;
constexpr std::size_t kMaxFactored = 24;  // operands; factoring looks at all pairs

constexpr std::array<std::string_view, 6> kCompareText = {"==", "!=", "<", "<=", ">", ">="};
constexpr std::array<Compare, 6> kOpposite = {Compare::not_equal,     Compare::equal,
                                              Compare::greater_equal, Compare::greater,
                                              Compare::less_equal,    Compare::less};

bool holds(Compare op, std::int64_t a, std::int64_t b) {
  switch (op) {
    case Compare::equal:
      return a == b;
    case Compare::not_equal:
      return a != b;
    case Compare::less:
      return a < b;
    case Compare::less_equal:
      return a <= b;
    case Compare::greater:
      return a > b;
    default:
      return a >= b;
  }
}

bool contains_operand(const std::vector<ExprId>& operands, ExprId id) {
  return std::find(operands.begin(), operands.end(), id) != operands.end();
}

/// A string literal of the predicate grammar, which has no escapes.
std::string quote(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' || static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  return out + "'";
}

}  // namespace

Expressions::Expressions() {
  Node node;
  node.boolean = true;
  nodes_.push_back(node);
  node.value = 1;
  nodes_.push_back(node);
  intern("");
}

std::uint32_t Expressions::intern(std::string_view text) {
  const auto found = text_index_.find(text);
  if (found != text_index_.end()) return found->second;
  texts_.emplace_back(text);
  return text_index_.emplace(text, static_cast<std::uint32_t>(texts_.size() - 1)).first->second;
}

ExprId Expressions::add(Node node) {
  std::uint32_t weight = 1;
  for (const ExprId operand : node.operands) {
    weight += nodes_[operand].weight;
    node.interesting |= nodes_[operand].interesting;
    node.has_unknown |= nodes_[operand].has_unknown;
    node.has_answer |= nodes_[operand].has_answer;
  }
  if (weight > kMaxWeight || nodes_.size() > kMaxNodes)
    return leaf(ExprKind::unknown, "too large", true);
  node.weight = weight;
  const auto [found, added] = index_.emplace(std::move(node), static_cast<ExprId>(nodes_.size()));
  if (added) nodes_.push_back(found->first);
  return found->second;
}

ExprId Expressions::leaf(ExprKind kind, std::string_view text, bool boolean) {
  Node node;
  node.kind = kind;
  node.text = intern(text);
  node.boolean = boolean;
  node.interesting = kind != ExprKind::unknown;
  node.has_unknown = kind == ExprKind::unknown;
  const auto [found, added] = index_.emplace(std::move(node), static_cast<ExprId>(nodes_.size()));
  if (added) nodes_.push_back(found->first);
  return found->second;
}

ExprId Expressions::env(std::string_view name) {
  return leaf(ExprKind::env, name, true);
}
ExprId Expressions::os(std::string_view version) {
  return leaf(ExprKind::os, version, true);
}
ExprId Expressions::unknown(std::string_view reason) {
  return leaf(ExprKind::unknown, reason, true);
}

ExprId Expressions::some_answer(std::string_view reason) {
  Node node;
  node.kind = ExprKind::unknown;
  node.text = intern(reason);
  node.boolean = node.interesting = node.has_unknown = true;
  return add(std::move(node));
}

ExprId Expressions::number(std::int64_t value) {
  Node node;
  node.kind = ExprKind::number;
  node.value = value;
  return add(std::move(node));
}

ExprId Expressions::answer(const QueryKey& key, bool boolean) {
  const auto [found, added] = key_index_.emplace(key, static_cast<std::uint32_t>(keys_.size()));
  if (added) keys_.push_back(key);
  Node node;
  node.kind = ExprKind::answer;
  node.value = found->second;
  node.boolean = boolean;
  node.interesting = node.has_answer = true;
  return add(std::move(node));
}

ExprId Expressions::contains(ExprId text, std::string_view part) {
  Node node;
  node.kind = ExprKind::contains;
  node.text = intern(part);
  node.boolean = true;
  node.operands = {text};
  return add(std::move(node));
}

ExprId Expressions::equals(ExprId text, std::string_view other) {
  Node node;
  node.kind = ExprKind::equals;
  node.text = intern(other);
  node.boolean = true;
  node.operands = {text};
  return add(std::move(node));
}

ExprId Expressions::negation(ExprId a) {
  const Node& node = nodes_[a];
  if (a <= 1) return 1 - a;
  if (node.kind == ExprKind::negation) return node.operands[0];
  if (node.kind == ExprKind::compare)
    return compare(kOpposite[static_cast<std::size_t>(node.op)], node.operands[0],
                   node.operands[1]);
  // De Morgan: "not" stays at the leaves, where simplification sees it.
  if (node.kind == ExprKind::conjunction || node.kind == ExprKind::disjunction) {
    const bool was_and = node.kind == ExprKind::conjunction;
    std::vector<ExprId> operands = node.operands;
    for (ExprId& operand : operands) operand = negation(operand);
    return junction(was_and ? ExprKind::disjunction : ExprKind::conjunction, std::move(operands));
  }
  Node out;
  out.kind = ExprKind::negation;
  out.boolean = true;
  out.operands = {a};
  return add(std::move(out));
}

bool Expressions::spend(std::size_t steps) {
  if (steps > budget_) return false;
  budget_ -= steps;
  total_ -= std::min(steps, total_);
  return true;
}

void Expressions::flatten(ExprKind kind, const std::vector<ExprId>& in,
                          std::vector<ExprId>& out) const {
  for (const ExprId operand : in) {
    if (nodes_[operand].kind == kind)
      out.insert(out.end(), nodes_[operand].operands.begin(), nodes_[operand].operands.end());
    else
      out.push_back(operand);
  }
}

/// `id`, given that `fact` is true (or false): fact's occurrences become constants.
ExprId Expressions::assume(ExprId id, ExprId fact, bool truth) {
  if (!spend(1)) return id;
  if (id == fact) return constant(truth);
  const Node& node = nodes_[id];
  if (node.kind == ExprKind::negation && node.operands[0] == fact) return constant(!truth);
  if (nodes_[fact].kind == ExprKind::negation && nodes_[fact].operands[0] == id)
    return constant(!truth);
  if (node.kind != ExprKind::conjunction && node.kind != ExprKind::disjunction) return id;
  const ExprKind kind = node.kind;
  const std::vector<ExprId> operands = node.operands;  // a copy: building moves the nodes
  // (a or b) is true, so (not a and not b and ...) is false; and the dual.
  const ExprKind clashing = truth ? ExprKind::conjunction : ExprKind::disjunction;
  const ExprKind fact_kind = truth ? ExprKind::disjunction : ExprKind::conjunction;
  if (kind == clashing && nodes_[fact].kind == fact_kind) {
    const std::vector<ExprId> parts = nodes_[fact].operands;
    if (std::all_of(parts.begin(), parts.end(),
                    [&](ExprId part) { return contains_operand(operands, negation(part)); }))
      return constant(!truth);
  }
  std::vector<ExprId> changed;
  for (const ExprId operand : operands) changed.push_back(assume(operand, fact, truth));
  return changed == operands ? id : junction(kind, std::move(changed));
}

/// One simplification among operands: inside an and, the other operands are true; inside an or
/// they are false. That is absorption, and x or (not x and y) = x or y. True if one changed.
bool Expressions::absorb(ExprKind kind, std::vector<ExprId>& operands) {
  if (operands.size() * operands.size() > budget_) return false;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (nodes_[operands[i]].operands.size() < 2) continue;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      if (i == k) continue;
      const ExprId simpler = assume(operands[i], operands[k], kind == ExprKind::conjunction);
      if (simpler == operands[i]) continue;
      operands[i] = simpler;
      return true;
    }
  }
  return false;
}

/// (c and x) or (c and not x) = c, and the dual; then what all operands share is taken out.
/// True if something changed.
bool Expressions::factor(ExprKind kind, std::vector<ExprId>& operands) {
  const ExprKind dual =
      kind == ExprKind::disjunction ? ExprKind::conjunction : ExprKind::disjunction;
  if (operands.size() < 2 || operands.size() > kMaxFactored || !spend(operands.size()))
    return false;
  const auto parts = [&](ExprId id) {
    return nodes_[id].kind == dual ? nodes_[id].operands : std::vector<ExprId>{id};
  };
  const auto without = [&](ExprId id, const std::vector<ExprId>& common) {
    std::vector<ExprId> rest = parts(id);
    std::erase_if(rest, [&](ExprId part) { return contains_operand(common, part); });
    return junction(dual, std::move(rest));
  };
  std::vector<ExprId> shared = parts(operands[0]);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    std::erase_if(shared, [&](ExprId part) { return !contains_operand(parts(operands[i]), part); });
    for (std::size_t k = i + 1; k < operands.size(); ++k) {
      std::vector<ExprId> common = parts(operands[i]);
      std::erase_if(common,
                    [&](ExprId part) { return !contains_operand(parts(operands[k]), part); });
      if (common.empty()) continue;
      if (without(operands[k], common) != negation(without(operands[i], common))) continue;
      operands[i] = junction(dual, common);
      operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(k));
      return true;
    }
  }
  if (shared.empty()) return false;
  std::vector<ExprId> rests;
  for (const ExprId operand : operands) rests.push_back(without(operand, shared));
  shared.push_back(junction(kind, std::move(rests)));
  operands = {junction(dual, std::move(shared))};
  return true;
}

ExprId Expressions::junction(ExprKind kind, std::vector<ExprId> operands) {
  const ExprId neutral = constant(kind == ExprKind::conjunction);
  for (int rounds = 0; rounds < 64; ++rounds) {
    std::vector<ExprId> flat;
    flatten(kind, operands, flat);
    // Keep the order of the code: it is what a reader compares with the disassembly.
    operands.clear();
    for (const ExprId operand : flat) {
      if (operand == neutral) continue;
      if (operand == 1 - neutral) return operand;
      if (!contains_operand(operands, operand)) operands.push_back(operand);
    }
    for (const ExprId operand : operands)
      if (nodes_[operand].kind == ExprKind::negation &&
          contains_operand(operands, nodes_[operand].operands[0]))
        return 1 - neutral;
    if (operands.size() > kMaxWeight) return unknown("too large");
    if (!absorb(kind, operands) && !factor(kind, operands)) break;
  }
  if (operands.empty()) return neutral;
  if (operands.size() == 1) return operands[0];
  Node node;
  node.kind = kind;
  node.boolean = true;
  node.operands = std::move(operands);
  return add(std::move(node));
}

ExprId Expressions::all_of(std::vector<ExprId> operands) {
  return junction(ExprKind::conjunction, std::move(operands));
}

ExprId Expressions::any_of(std::vector<ExprId> operands) {
  return junction(ExprKind::disjunction, std::move(operands));
}

ExprId Expressions::compare(Compare op, ExprId left, ExprId right) {
  const Node &a = nodes_[left], &b = nodes_[right];
  if (a.kind == ExprKind::number && b.kind == ExprKind::number)
    return constant(holds(op, a.value, b.value));
  const bool equality = op == Compare::equal || op == Compare::not_equal;
  if (a.boolean && b.kind == ExprKind::number && equality) {
    if (b.value != 0 && b.value != 1) return constant(op == Compare::not_equal);
    const bool positive = (b.value == 1) == (op == Compare::equal);
    return positive ? left : negation(left);
  }
  if (a.boolean && b.kind == ExprKind::number && a.kind != ExprKind::unknown) {
    const bool at_0 = holds(op, 0, b.value), at_1 = holds(op, 1, b.value);
    if (at_0 == at_1) return constant(at_0);
    return at_1 ? left : negation(left);
  }
  Node node;
  node.kind = ExprKind::compare;
  node.op = op;
  node.boolean = true;
  node.operands = {left, right};
  return add(std::move(node));
}

ExprId Expressions::arithmetic(char op, ExprId left, ExprId right) {
  Node node;
  node.kind = ExprKind::arithmetic;
  node.sign = op;
  node.operands = {left, right};
  return add(std::move(node));
}

ExprId Expressions::select(ExprId condition, ExprId a, ExprId b) {
  if (a == b) return a;
  return either(both(condition, a), both(negation(condition), b));
}

std::vector<QueryKey> Expressions::answers(ExprId id) const {
  std::set<ExprId> seen;
  std::vector<ExprId> open{id};
  std::vector<QueryKey> out;
  while (!open.empty()) {
    const ExprId at = open.back();
    open.pop_back();
    if (!seen.insert(at).second) continue;
    if (nodes_[at].kind == ExprKind::answer) out.push_back(keys_[nodes_[at].value]);
    open.insert(open.end(), nodes_[at].operands.begin(), nodes_[at].operands.end());
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

namespace {

/// The grammar's aliases for answers, by canonical query.
struct AliasRow {
  std::string_view query, alias;
};
constexpr std::array kAliases = {
    AliasRow{"supportsFamily:", "family"},           AliasRow{"supportsFeatureSet:", "feature_set"},
    AliasRow{"maxThreadgroupMemoryLength", "tgmem"}, AliasRow{"hasUnifiedMemory", "unified"},
    AliasRow{"supportsRaytracing", "raytracing"},
};

std::string print_answer(const QueryKey& key) {
  std::string arguments;
  for (const std::int64_t argument : key.arguments)
    arguments += fmt::format("{}{}", arguments.empty() ? "" : ", ", argument);
  for (const AliasRow& row : kAliases)
    if (row.query == key.query) return fmt::format("{}({})", row.alias, arguments);
  return fmt::format("answer({}{}{})", quote(key.query), arguments.empty() ? "" : ", ", arguments);
}

// How tightly each form binds; tables/predicate.h has the grammar.
enum Binding { kOr, kAnd, kNot, kCompare, kSum, kProduct, kPrimary };

std::string parenthesised(std::string text, bool needed) {
  return needed ? "(" + text + ")" : text;
}

}  // namespace

std::string Expressions::print_junction(const Node& node, int binding) const {
  const bool is_or = node.kind == ExprKind::disjunction;
  std::string out;
  for (const ExprId operand : node.operands) {
    if (!out.empty()) out += is_or ? " or " : " and ";
    out += print(operand, (is_or ? kOr : kAnd) + 1);
  }
  return parenthesised(out, binding > (is_or ? kOr : kAnd));
}

std::string Expressions::print(ExprId id, int binding) const {
  const Node& node = nodes_[id];
  const auto text = [&] { return quote(texts_[node.text]); };
  switch (node.kind) {
    case ExprKind::constant:
      return node.value ? "true" : "false";
    case ExprKind::number:
      return fmt::format("{}", node.value);
    case ExprKind::answer:
      return print_answer(keys_[node.value]);
    case ExprKind::env:
      return fmt::format("env({})", text());
    case ExprKind::os:
      return fmt::format("os({})", texts_[node.text]);
    case ExprKind::unknown:
      return fmt::format("unknown({})", text());
    case ExprKind::contains:
      return fmt::format("contains({}, {})", print(node.operands[0], kOr), text());
    case ExprKind::equals:
      return parenthesised(fmt::format("{} == {}", print(node.operands[0], kSum), text()),
                           binding > kCompare);
    case ExprKind::negation:
      return parenthesised("not " + print(node.operands[0], kNot), binding > kNot);
    case ExprKind::conjunction:
    case ExprKind::disjunction:
      return print_junction(node, binding);
    case ExprKind::compare:
      return parenthesised(fmt::format("{} {} {}", print(node.operands[0], kSum),
                                       kCompareText[static_cast<std::size_t>(node.op)],
                                       print(node.operands[1], kSum)),
                           binding > kCompare);
    case ExprKind::arithmetic: {
      const int own = node.sign == '*' || node.sign == '/' ? kProduct : kSum;
      return parenthesised(fmt::format("{} {} {}", print(node.operands[0], own), node.sign,
                                       print(node.operands[1], own + 1)),
                           binding > own);
    }
  }
  return {};
}

std::string Expressions::print(ExprId id) const {
  return print(id, kOr);
}

}  // namespace metaldoctor
