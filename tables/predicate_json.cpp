#include <array>
#include <string>

#include "tables/predicate_node.h"

namespace metaldoctor {
namespace detail {
namespace {

using Kind = Predicate::Node::Kind;
using Parsed = Result<NodePtr>;

Parsed error(const std::string& where, std::string what) {
  return fail(Fault::input, "predicate-form", where, std::move(what));
}

Parsed read(const Json& json, const std::string& where, int depth);

Result<Value> read_scalar(const Json& json, const std::string& where) {
  if (json.is_boolean()) return Value{json.get<bool>()};
  if (json.is_number_integer()) {
    // Unsigned values above the signed range would wrap in get<int64>.
    const bool fits = !json.is_number_unsigned() || json.get<std::uint64_t>() <= kMaxInteger;
    const std::int64_t number = fits ? json.get<std::int64_t>() : kMaxInteger + 1;
    if (number > kMaxInteger || number < -kMaxInteger) {
      return tl::unexpected(error(where, "an integer lies in -2^53..2^53").error());
    }
    return Value{number};
  }
  if (!json.is_string()) {
    return tl::unexpected(error(where, "expected true, false, an integer or a string").error());
  }
  std::string text = json.get<std::string>();
  if (auto problem = string_problem(text)) {
    return tl::unexpected(error(where, *std::move(problem)).error());
  }
  return Value{std::move(text)};
}

Parsed combine(Predicate::Node node, std::vector<NodePtr> children, const std::string& where) {
  NodePtr made = parent_node(std::move(node), std::move(children));
  if (!made) return error(where, std::string(kTooLarge));
  return made;
}

Parsed read_call(const Json& json, const std::string& where, int depth) {
  if (!json["q"].is_string() || !json["args"].is_array()) {
    return error(where, "expected {\"q\": name, \"args\": [...]}");
  }
  const Json& args = json["args"];
  Call call{json["q"].get<std::string>(), nullptr, {}};
  if (args.size() > kMaxArguments) return error(where, "too many arguments");
  std::size_t first = 0;
  if (takes_expression(call.name) && !args.empty()) {
    Parsed inner = read(args[0], where + "/args/0", depth + 1);
    if (!inner) return inner;
    call.inner = *std::move(inner);
    first = 1;
  }
  for (std::size_t i = first; i < args.size(); ++i) {
    auto value = read_scalar(args[i], where + "/args/" + std::to_string(i));
    if (!value) return tl::unexpected(std::move(value).error());
    call.literals.push_back(*std::move(value));
  }
  auto node = node_of(call);
  if (!node) return error(where, std::move(node).error());
  return *std::move(node);
}

Parsed read_list(const Json& list, Kind kind, const std::string& where, int depth) {
  if (!list.is_array() || list.empty()) return error(where, "expected a list of expressions");
  if (list.size() > kMaxNodes) return error(where, std::string(kTooLarge));
  std::vector<NodePtr> parts;
  for (std::size_t i = 0; i < list.size(); ++i) {
    Parsed part = read(list[i], where + "/" + std::to_string(i), depth + 1);
    if (!part) return part;
    parts.push_back(*std::move(part));
  }
  if (parts.size() == 1) return parts.front();  // the text form has no list of one
  Predicate::Node node;
  node.kind = kind;
  return combine(std::move(node), std::move(parts), where);
}

Parsed read_binary(const Json& json, Kind kind, const Json& name, const std::string& where,
                   int depth) {
  const OperatorText* op = name.is_string() ? find_operator(name.get<std::string>()) : nullptr;
  const bool comparison = op && op->binding == Binding::comparison;
  if (!op || comparison != (kind == Kind::compare)) return error(where, "unknown operator");
  Parsed left = read(json["l"], where + "/l", depth + 1);
  if (!left) return left;
  Parsed right = read(json["r"], where + "/r", depth + 1);
  if (!right) return right;
  Predicate::Node node;
  node.kind = kind;
  node.op = op->op;
  return combine(std::move(node), {*std::move(left), *std::move(right)}, where);
}

bool has_keys(const Json& json, std::initializer_list<const char*> keys) {
  if (json.size() != keys.size()) return false;
  for (const char* key : keys) {
    if (!json.contains(key)) return false;
  }
  return true;
}

Parsed read(const Json& json, const std::string& where, int depth) {
  if (depth > kMaxDepth) return error(where, std::string(kTooLarge));
  if (!json.is_object()) return error(where, "expected an expression");
  if (has_keys(json, {"q", "args"})) return read_call(json, where, depth);
  if (has_keys(json, {"and"})) return read_list(json["and"], Kind::all, where + "/and", depth);
  if (has_keys(json, {"or"})) return read_list(json["or"], Kind::any, where + "/or", depth);
  if (has_keys(json, {"cmp", "l", "r"})) {
    return read_binary(json, Kind::compare, json["cmp"], where, depth);
  }
  if (has_keys(json, {"arith", "l", "r"})) {
    return read_binary(json, Kind::arithmetic, json["arith"], where, depth);
  }
  if (has_keys(json, {"const"})) {
    auto value = read_scalar(json["const"], where + "/const");
    if (!value) return tl::unexpected(std::move(value).error());
    return constant_node(*std::move(value));
  }
  if (has_keys(json, {"not"})) {
    Parsed inner = read(json["not"], where + "/not", depth + 1);
    if (!inner) return inner;
    Predicate::Node node;
    node.kind = Kind::negation;
    return combine(std::move(node), {*std::move(inner)}, where);
  }
  return error(where,
               "expected one of {q, args}, {and}, {or}, {not}, {cmp, l, r}, "
               "{arith, l, r}, {const}");
}

Json scalar(const Value& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag;
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return nullptr;
}

Json write(const Predicate::Node& node);

Json write_call(const Call& call) {
  Json args = Json::array();
  if (call.inner) args.push_back(write(*call.inner));
  for (const Value& literal : call.literals) args.push_back(scalar(literal));
  return Json{{"q", call.name}, {"args", std::move(args)}};
}

Json write(const Predicate::Node& node) {
  if (const auto call = call_of(node)) return write_call(*call);
  switch (node.kind) {
    case Kind::all:
    case Kind::any: {
      Json list = Json::array();
      for (const NodePtr& child : node.children) list.push_back(write(*child));
      return Json{{node.kind == Kind::all ? "and" : "or", std::move(list)}};
    }
    case Kind::negation:
      return Json{{"not", write(*node.children[0])}};
    case Kind::compare:
    case Kind::arithmetic:
      return Json{{node.kind == Kind::compare ? "cmp" : "arith", describe(node.op).text},
                  {"l", write(*node.children[0])},
                  {"r", write(*node.children[1])}};
    default:
      return Json{{"const", scalar(node.constant)}};
  }
}

}  // namespace
}  // namespace detail

Result<Predicate> Predicate::from_json(const Json& json, std::string_view where) {
  auto root = detail::read(json, std::string(where), 1);
  if (!root) return tl::unexpected(std::move(root).error());
  return Predicate(*std::move(root));
}

Json Predicate::to_json() const {
  return detail::write(*root_);
}

}  // namespace metaldoctor
