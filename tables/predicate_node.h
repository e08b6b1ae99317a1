#pragma once
// Inside of tables/predicate*.cpp only: the tree of a Predicate and how its nodes are spelled.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tables/predicate.h"

namespace metaldoctor::detail {

using NodePtr = std::shared_ptr<const Predicate::Node>;

inline constexpr int kMaxDepth = 200;
inline constexpr std::size_t kMaxNodes = 10'000;
inline constexpr std::size_t kMaxText = std::size_t{64} << 10;
inline constexpr std::size_t kMaxString = 1024;
inline constexpr std::size_t kMaxArguments = 8;
/// What JSON numbers hold exactly; a predicate must survive both spellings.
inline constexpr std::int64_t kMaxInteger = std::int64_t{1} << 53;

enum class Operator {
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  add,
  subtract,
  multiply,
  divide,
};

/// How tightly a form binds; a child that binds more loosely than its place needs parentheses.
enum class Binding { any, all, negation, comparison, sum, product, primary };

struct OperatorText {
  Operator op;
  std::string_view text;
  Binding binding;
};
inline constexpr std::array<OperatorText, 10> kOperators{{
    {Operator::less_equal, "<=", Binding::comparison},
    {Operator::greater_equal, ">=", Binding::comparison},
    {Operator::equal, "==", Binding::comparison},
    {Operator::not_equal, "!=", Binding::comparison},
    {Operator::less, "<", Binding::comparison},
    {Operator::greater, ">", Binding::comparison},
    {Operator::add, "+", Binding::sum},
    {Operator::subtract, "-", Binding::sum},
    {Operator::multiply, "*", Binding::product},
    {Operator::divide, "/", Binding::product},
}};
const OperatorText& describe(Operator op);
/// The operator spelled exactly `text`.
const OperatorText* find_operator(std::string_view text);

}  // namespace metaldoctor::detail

namespace metaldoctor {

struct Predicate::Node {
  enum class Kind {
    constant,
    unknown,
    atom,
    all,
    any,
    negation,
    compare,
    arithmetic,
    contains,
    arch_gen,
    arch_suffix,
  };
  Kind kind = Kind::constant;
  Value constant;    ///< constant
  std::string text;  ///< unknown: the reason; contains: what is looked for
  Atom atom;         ///< atom
  detail::Operator op = detail::Operator::equal;  ///< compare, arithmetic
  std::vector<detail::NodePtr> children;
  int depth = 1;          ///< of the tree below and with this node
  std::size_t nodes = 1;  ///< in that tree
};

}  // namespace metaldoctor

namespace metaldoctor::detail {

/// A call as it is written: family(1007), contains(x, 's').
struct Call {
  std::string name;
  NodePtr inner;  ///< contains only: its first argument
  std::vector<Value> literals;
};

NodePtr constant_node(Value value);
/// Adds the children and the sizes. Null when the tree would be deeper or larger than allowed.
NodePtr parent_node(Predicate::Node node, std::vector<NodePtr> children);
inline constexpr std::string_view kTooLarge =
    "the expression is nested deeper than 200 levels or "
    "has more than 10000 parts";

/// Whether the first argument of the call is an expression and not a literal.
bool takes_expression(std::string_view name);
/// The node of a call, aliases resolved, or what is wrong with it.
tl::expected<NodePtr, std::string> node_of(const Call& call);
/// The shortest call that gives exactly this node; none where it is not a call.
std::optional<Call> call_of(const Predicate::Node& node);
/// None where the string can be part of a predicate, else what is wrong with it.
std::optional<std::string> string_problem(std::string_view text);

bool same_tree(const Predicate::Node& a, const Predicate::Node& b);
std::string print_call(const Call& call);
std::string print_node(const Predicate::Node& node);

}  // namespace metaldoctor::detail
