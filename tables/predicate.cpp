#include "tables/predicate.h"

#include <algorithm>
#include <array>
#include <utility>

#include "tables/predicate_node.h"

namespace metaldoctor {

using detail::NodePtr;
using detail::Operator;
using Kind = Predicate::Node::Kind;

Truth operator!(Truth a) {
  if (a == Truth::unknown) return a;
  return a == Truth::yes ? Truth::no : Truth::yes;
}

Truth operator&&(Truth a, Truth b) {
  if (a == Truth::no || b == Truth::no) return Truth::no;
  return a == Truth::yes && b == Truth::yes ? Truth::yes : Truth::unknown;
}

Truth operator||(Truth a, Truth b) {
  return !(!a && !b);
}

std::string_view to_string(Truth truth) {
  constexpr std::array<std::string_view, 3> texts{"no", "yes", "unknown"};
  return texts[static_cast<std::size_t>(truth)];
}

std::string to_string(const Atom& atom) {
  if (atom.kind == AtomKind::answer) return to_string(atom.key);
  Predicate::Node node;
  node.kind = Kind::atom;
  node.atom = atom;
  const auto call = detail::call_of(node);
  return call ? detail::print_call(*call) : atom.name;
}

namespace {

Truth truth_of(const Value& value) {
  const bool* known = std::get_if<bool>(&value);
  if (!known) return Truth::unknown;  // an integer or a text is no truth value
  return *known ? Truth::yes : Truth::no;
}

Value value_of(Truth truth) {
  if (truth == Truth::unknown) return {};
  return truth == Truth::yes;
}

Value compare_integers(Operator op, std::int64_t left, std::int64_t right) {
  switch (op) {
    case Operator::equal:
      return left == right;
    case Operator::not_equal:
      return left != right;
    case Operator::less:
      return left < right;
    case Operator::less_equal:
      return left <= right;
    case Operator::greater:
      return left > right;
    case Operator::greater_equal:
      return left >= right;
    default:
      return {};
  }
}

Value compare(Operator op, const Value& left, const Value& right) {
  if (!is_known(left) || left.index() != right.index()) return {};
  if (const auto* number = std::get_if<std::int64_t>(&left)) {
    return compare_integers(op, *number, std::get<std::int64_t>(right));
  }
  // Texts and truth values have no order.
  if (op == Operator::equal) return left == right;
  if (op == Operator::not_equal) return left != right;
  return {};
}

Value compute(Operator op, const Value& left, const Value& right) {
  const auto* a = std::get_if<std::int64_t>(&left);
  const auto* b = std::get_if<std::int64_t>(&right);
  if (!a || !b) return {};
  std::int64_t result = 0;
  bool overflow = false;
  switch (op) {
    case Operator::add:
      overflow = __builtin_add_overflow(*a, *b, &result);
      break;
    case Operator::subtract:
      overflow = __builtin_sub_overflow(*a, *b, &result);
      break;
    case Operator::multiply:
      overflow = __builtin_mul_overflow(*a, *b, &result);
      break;
    case Operator::divide:
      overflow = *b == 0 || (*b == -1 && *a == INT64_MIN);
      if (!overflow) result = *a / *b;
      break;
    default:
      return {};
  }
  return overflow ? Value{} : Value{result};
}

// MLX (device.cpp, `arch_gen_`): the two characters before the last one of architecture.name, a
// character that is no digit counting as 0: "applegpu_g13d" is 13, "air64_v27" is 2.
Value arch_gen(const std::string& architecture) {
  std::int64_t generation = 0;
  for (std::size_t from_end : {std::size_t{3}, std::size_t{2}}) {
    const char c =
        architecture.size() < from_end ? '0' : architecture[architecture.size() - from_end];
    generation = generation * 10 + (c >= '0' && c <= '9' ? c - '0' : 0);
  }
  return generation;
}

Value evaluate_node(const Predicate::Node& node, const World& world) {
  const auto child = [&](std::size_t i) { return evaluate_node(*node.children[i], world); };
  switch (node.kind) {
    case Kind::constant:
      return node.constant;
    case Kind::unknown:
      return {};
    case Kind::atom:
      return world(node.atom);
    case Kind::negation:
      return value_of(!truth_of(child(0)));
    case Kind::all:
    case Kind::any: {
      const bool all = node.kind == Kind::all;
      Truth truth = all ? Truth::yes : Truth::no;
      for (const NodePtr& part : node.children) {
        const Truth next = truth_of(evaluate_node(*part, world));
        truth = all ? truth && next : truth || next;
      }
      return value_of(truth);
    }
    case Kind::compare:
      return compare(node.op, child(0), child(1));
    case Kind::arithmetic:
      return compute(node.op, child(0), child(1));
    case Kind::contains:
    case Kind::arch_gen:
    case Kind::arch_suffix: {
      const Value inner = child(0);
      const auto* text = std::get_if<std::string>(&inner);
      if (!text) return {};
      if (node.kind == Kind::contains) return text->find(node.text) != std::string::npos;
      if (text->empty()) return {};
      if (node.kind == Kind::arch_gen) return arch_gen(*text);
      return std::string(1, text->back());
    }
  }
  return {};
}

void collect(const Predicate::Node& node, std::set<Atom>& atoms, std::set<std::string>& reasons) {
  if (node.kind == Kind::atom) atoms.insert(node.atom);
  if (node.kind == Kind::unknown) reasons.insert(node.text);
  for (const NodePtr& child : node.children) collect(*child, atoms, reasons);
}

}  // namespace

Predicate::Predicate() : root_(detail::constant_node(true)) {}
Predicate::Predicate(std::shared_ptr<const Node> root) : root_(std::move(root)) {}

std::string Predicate::print() const {
  return detail::print_node(*root_);
}
Value Predicate::value(const World& world) const {
  return evaluate_node(*root_, world);
}
Truth Predicate::evaluate(const World& world) const {
  return truth_of(value(world));
}

std::set<Atom> Predicate::atoms() const {
  std::set<Atom> atoms;
  std::set<std::string> reasons;
  collect(*root_, atoms, reasons);
  return atoms;
}

std::set<std::string> Predicate::unknown_reasons() const {
  std::set<Atom> atoms;
  std::set<std::string> reasons;
  collect(*root_, atoms, reasons);
  return reasons;
}

bool Predicate::operator==(const Predicate& other) const {
  return root_ == other.root_ || detail::same_tree(*root_, *other.root_);
}

namespace detail {

const OperatorText& describe(Operator op) {
  return *std::find_if(kOperators.begin(), kOperators.end(),
                       [&](const OperatorText& row) { return row.op == op; });
}

const OperatorText* find_operator(std::string_view text) {
  const auto row = std::find_if(kOperators.begin(), kOperators.end(),
                                [&](const OperatorText& r) { return r.text == text; });
  return row == kOperators.end() ? nullptr : &*row;
}

NodePtr constant_node(Value value) {
  Predicate::Node node;
  node.constant = std::move(value);
  return std::make_shared<const Predicate::Node>(std::move(node));
}

NodePtr parent_node(Predicate::Node node, std::vector<NodePtr> children) {
  for (const NodePtr& child : children) {
    node.depth = std::max(node.depth, child->depth + 1);
    node.nodes += child->nodes;
  }
  if (node.depth > kMaxDepth || node.nodes > kMaxNodes) return nullptr;
  node.children = std::move(children);
  return std::make_shared<const Predicate::Node>(std::move(node));
}

bool same_tree(const Predicate::Node& a, const Predicate::Node& b) {
  return a.kind == b.kind && a.constant == b.constant && a.text == b.text && a.atom == b.atom &&
         a.op == b.op &&
         std::equal(a.children.begin(), a.children.end(), b.children.begin(), b.children.end(),
                    [](const NodePtr& x, const NodePtr& y) { return same_tree(*x, *y); });
}

}  // namespace detail
}  // namespace metaldoctor
