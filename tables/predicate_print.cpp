#include <string>

#include "tables/predicate_node.h"

namespace metaldoctor::detail {

using Kind = Predicate::Node::Kind;

namespace {

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string literal(const Value& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return quoted(*text);
  return "unknown('')";  // no reader builds such a constant
}

Binding binding_of(const Predicate::Node& node) {
  if (call_of(node)) return Binding::primary;
  switch (node.kind) {
    case Kind::any:
      return Binding::any;
    case Kind::all:
      return Binding::all;
    case Kind::negation:
      return Binding::negation;
    case Kind::compare:
    case Kind::arithmetic:
      return describe(node.op).binding;
    default:
      return Binding::primary;
  }
}

Binding tighter(Binding binding) {
  return static_cast<Binding>(static_cast<int>(binding) + 1);
}

std::string print_at(const Predicate::Node& node, Binding place) {
  std::string text = print_node(node);
  return binding_of(node) < place ? "(" + text + ")" : text;
}

std::string print_list(const Predicate::Node& node, std::string_view word, Binding binding) {
  std::string out;
  for (const NodePtr& child : node.children) {
    if (!out.empty()) out += word;
    out += print_at(*child, tighter(binding));
  }
  return out;
}

}  // namespace

std::string print_call(const Call& call) {
  std::string out = call.name + "(";
  if (call.inner) out += print_node(*call.inner);
  bool first = !call.inner;
  for (const Value& value : call.literals) {
    if (!first) out += ", ";
    first = false;
    out += literal(value);
  }
  return out + ")";
}

std::string print_node(const Predicate::Node& node) {
  if (const auto call = call_of(node)) return print_call(*call);
  switch (node.kind) {
    case Kind::any:
      return print_list(node, " or ", Binding::any);
    case Kind::all:
      return print_list(node, " and ", Binding::all);
    case Kind::negation:
      return "not " + print_at(*node.children[0], Binding::negation);
    case Kind::compare:
    case Kind::arithmetic: {
      const OperatorText& op = describe(node.op);
      // Arithmetic groups from the left; comparisons do not chain.
      const Binding left = node.kind == Kind::compare ? tighter(op.binding) : op.binding;
      return print_at(*node.children[0], left) + " " + std::string(op.text) + " " +
             print_at(*node.children[1], tighter(op.binding));
    }
    default:
      return literal(node.constant);
  }
}

}  // namespace metaldoctor::detail
