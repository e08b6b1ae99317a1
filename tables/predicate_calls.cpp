// The calls of the predicate language: one table for reading, and its inverse for writing.
#include <algorithm>
#include <array>

#include "tables/os_version.h"
#include "tables/predicate_node.h"

namespace metaldoctor::detail {

using Kind = Predicate::Node::Kind;

namespace {

enum class Arguments {
  none,
  integer,
  text,
  version,              ///< one to three integers
  query,                ///< a selector, then integers
  expression_and_text,  ///< contains
};

/// What a call stands for. `subject` is a selector, or the name of a driver fact.
enum class Meaning {
  answer,         ///< answer(subject, the integers given)
  named_answer,   ///< answer(first text, integers)
  answer_plus_1,  ///< answer(subject) + 1
  answer_is_2,    ///< answer(subject) == 2
  answer_has,     ///< contains(answer(subject), text)
  architecture_generation,
  architecture_suffix,
  contains,
  driver,
  os,
  env,
  build,
  unknown,
};

struct CallRow {
  std::string_view name;
  Arguments arguments;
  Meaning meaning;
  std::string_view subject;
};

// MTLArgumentBuffersTier1 is 0 and tier 2 is 1; MTLDeviceLocationExternal is 2 (Metal headers).
constexpr std::array<CallRow, 20> kCalls{{
    {"family", Arguments::integer, Meaning::answer, "supportsFamily:"},
    {"feature_set", Arguments::integer, Meaning::answer, "supportsFeatureSet:"},
    {"tgmem", Arguments::none, Meaning::answer, "maxThreadgroupMemoryLength"},
    {"unified", Arguments::none, Meaning::answer, "hasUnifiedMemory"},
    {"raytracing", Arguments::none, Meaning::answer, "supportsRaytracing"},
    {"barycentric", Arguments::none, Meaning::answer, "supportsShaderBarycentricCoordinates"},
    {"answer", Arguments::query, Meaning::named_answer, ""},
    {"argtier", Arguments::none, Meaning::answer_plus_1, "argumentBuffersSupport"},
    {"location_external", Arguments::none, Meaning::answer_is_2, "location"},
    {"name_has", Arguments::text, Meaning::answer_has, "name"},
    {"arch_gen", Arguments::none, Meaning::architecture_generation, "architecture.name"},
    {"arch_suffix", Arguments::none, Meaning::architecture_suffix, "architecture.name"},
    {"contains", Arguments::expression_and_text, Meaning::contains, ""},
    {"rset_ok", Arguments::none, Meaning::driver, "rset_ok"},
    {"arg_encoder_ok", Arguments::none, Meaning::driver, "arg_encoder_ok"},
    {"probe_compile", Arguments::text, Meaning::driver, "probe_compile"},
    {"os", Arguments::version, Meaning::os, ""},
    {"env", Arguments::text, Meaning::env, ""},
    {"build", Arguments::text, Meaning::build, ""},
    {"unknown", Arguments::text, Meaning::unknown, ""},
}};

const CallRow* find_row(std::string_view name) {
  const auto row =
      std::find_if(kCalls.begin(), kCalls.end(), [&](const CallRow& r) { return r.name == name; });
  return row == kCalls.end() ? nullptr : &*row;
}

bool is_integer(const Value& value) {
  return std::holds_alternative<std::int64_t>(value);
}
bool is_text(const Value& value) {
  return std::holds_alternative<std::string>(value);
}

/// None where the arguments fit, else what the call takes.
std::optional<std::string_view> argument_problem(Arguments arguments, const Call& call) {
  const auto& given = call.literals;
  const bool integers = std::all_of(given.begin(), given.end(), is_integer);
  if ((arguments == Arguments::expression_and_text) != (call.inner != nullptr)) {
    return "an expression and a string";
  }
  switch (arguments) {
    case Arguments::none:
      if (!given.empty()) return "no argument";
      break;
    case Arguments::integer:
      if (given.size() != 1 || !integers) return "one integer";
      break;
    case Arguments::text:
      if (given.size() != 1 || !is_text(given[0])) return "one string";
      break;
    case Arguments::version:
      if (given.empty() || given.size() > 3 || !integers) return "one to three integers";
      break;
    case Arguments::query:
      if (given.empty() || given.size() > kMaxArguments || !is_text(given[0]) ||
          !std::all_of(given.begin() + 1, given.end(), is_integer)) {
        return "a selector and at most 7 integers";
      }
      break;
    case Arguments::expression_and_text:
      if (given.size() != 1 || !is_text(given[0])) return "an expression and a string";
      break;
  }
  return std::nullopt;
}

NodePtr atom_node(Atom atom) {
  Predicate::Node node;
  node.kind = Kind::atom;
  node.atom = std::move(atom);
  return std::make_shared<const Predicate::Node>(std::move(node));
}

NodePtr named_atom(AtomKind kind, std::string name) {
  return atom_node(Atom{.kind = kind, .key = {}, .name = std::move(name)});
}

NodePtr answer_node(std::string_view query, std::vector<std::int64_t> arguments = {}) {
  QueryKey key{std::string(query), std::move(arguments)};
  return atom_node(Atom{.kind = AtomKind::answer, .key = std::move(key), .name = {}});
}

NodePtr over(Kind kind, NodePtr child, std::string text = {}) {
  Predicate::Node node;
  node.kind = kind;
  node.text = std::move(text);
  return parent_node(std::move(node), {std::move(child)});
}

NodePtr binary(Kind kind, Operator op, NodePtr left, std::int64_t right) {
  Predicate::Node node;
  node.kind = kind;
  node.op = op;
  return parent_node(std::move(node), {std::move(left), constant_node(right)});
}

NodePtr os_node(const std::vector<Value>& literals) {
  std::array<int, 3> parts{};
  for (std::size_t i = 0; i < literals.size(); ++i) {
    const std::int64_t part = std::get<std::int64_t>(literals[i]);
    if (part < 0 || part > 9999) return nullptr;
    parts[i] = static_cast<int>(part);
  }
  return named_atom(AtomKind::os, to_string(OsVersion{parts[0], parts[1], parts[2]}));
}

std::vector<std::int64_t> integers_from(const std::vector<Value>& literals, std::size_t first) {
  std::vector<std::int64_t> integers;
  for (std::size_t i = first; i < literals.size(); ++i) {
    integers.push_back(std::get<std::int64_t>(literals[i]));
  }
  return integers;
}

NodePtr build_node(const CallRow& row, const Call& call) {
  const auto text = [&] { return std::get<std::string>(call.literals.at(0)); };
  switch (row.meaning) {
    case Meaning::answer:
      return answer_node(row.subject, integers_from(call.literals, 0));
    case Meaning::named_answer:
      return answer_node(text(), integers_from(call.literals, 1));
    case Meaning::answer_plus_1:
      return binary(Kind::arithmetic, Operator::add, answer_node(row.subject), 1);
    case Meaning::answer_is_2:
      return binary(Kind::compare, Operator::equal, answer_node(row.subject), 2);
    case Meaning::answer_has:
      return over(Kind::contains, answer_node(row.subject), text());
    case Meaning::architecture_generation:
      return over(Kind::arch_gen, answer_node(row.subject));
    case Meaning::architecture_suffix:
      return over(Kind::arch_suffix, answer_node(row.subject));
    case Meaning::contains:
      return over(Kind::contains, call.inner, text());
    case Meaning::driver:
      return named_atom(AtomKind::driver,
                        std::string(row.subject) + (call.literals.empty() ? "" : ":" + text()));
    case Meaning::os:
      return os_node(call.literals);
    case Meaning::env:
      return named_atom(AtomKind::env, text());
    case Meaning::build:
      return named_atom(AtomKind::build, text());
    case Meaning::unknown: {
      Predicate::Node node;
      node.kind = Kind::unknown;
      node.text = text();
      return std::make_shared<const Predicate::Node>(std::move(node));
    }
  }
  return nullptr;
}

std::optional<Call> call_of_answer(const QueryKey& key) {
  std::vector<Value> integers(key.arguments.begin(), key.arguments.end());
  const auto row = std::find_if(kCalls.begin(), kCalls.end(), [&](const CallRow& r) {
    return r.meaning == Meaning::answer && r.subject == key.query &&
           (r.arguments == Arguments::integer ? std::size_t{1} : std::size_t{0}) == integers.size();
  });
  if (row != kCalls.end()) return Call{std::string(row->name), nullptr, std::move(integers)};
  integers.insert(integers.begin(), Value{key.query});
  return Call{"answer", nullptr, std::move(integers)};
}

std::optional<Call> call_of_os(const std::string& name) {
  const auto version = parse_os_version(name);
  if (!version) return std::nullopt;
  std::vector<Value> parts{std::int64_t{version->major}};
  if (version->minor != 0 || version->patch != 0) parts.emplace_back(std::int64_t{version->minor});
  if (version->patch != 0) parts.emplace_back(std::int64_t{version->patch});
  return Call{"os", nullptr, std::move(parts)};
}

std::optional<Call> call_of_atom(const Atom& atom) {
  switch (atom.kind) {
    case AtomKind::answer:
      return call_of_answer(atom.key);
    case AtomKind::os:
      return call_of_os(atom.name);
    case AtomKind::env:
      return Call{"env", nullptr, {atom.name}};
    case AtomKind::build:
      return Call{"build", nullptr, {atom.name}};
    case AtomKind::driver: {
      const std::size_t colon = atom.name.find(':');
      if (colon == std::string::npos) return Call{atom.name, nullptr, {}};
      return Call{atom.name.substr(0, colon), nullptr, {atom.name.substr(colon + 1)}};
    }
  }
  return std::nullopt;
}

/// The row of an alias that stands for `meaning` applied to the plain answer below `node`.
const CallRow* alias_over(Meaning meaning, const Predicate::Node& node) {
  const Predicate::Node& child = *node.children.front();
  if (child.kind != Kind::atom || child.atom.kind != AtomKind::answer ||
      !child.atom.key.arguments.empty()) {
    return nullptr;
  }
  const auto row = std::find_if(kCalls.begin(), kCalls.end(), [&](const CallRow& r) {
    return r.meaning == meaning && r.subject == child.atom.key.query;
  });
  return row == kCalls.end() ? nullptr : &*row;
}

bool is_binary(const Predicate::Node& node, Operator op, std::int64_t right) {
  return node.op == op && node.children[1]->kind == Kind::constant &&
         node.children[1]->constant == Value{right};
}

std::optional<Call> plain_alias(Meaning meaning, const Predicate::Node& node) {
  const CallRow* row = alias_over(meaning, node);
  if (!row) return std::nullopt;
  return Call{std::string(row->name), nullptr, {}};
}

}  // namespace

bool takes_expression(std::string_view name) {
  const CallRow* row = find_row(name);
  return row && row->arguments == Arguments::expression_and_text;
}

tl::expected<NodePtr, std::string> node_of(const Call& call) {
  const CallRow* row = find_row(call.name);
  if (!row) return tl::unexpected("there is no call '" + call.name + "'");
  if (const auto takes = argument_problem(row->arguments, call)) {
    return tl::unexpected(call.name + " takes " + std::string(*takes));
  }
  for (const Value& literal : call.literals) {
    const auto* text = std::get_if<std::string>(&literal);
    if (!text) continue;
    if (text->empty()) return tl::unexpected(call.name + " takes no empty string");
    if (auto problem = string_problem(*text)) return tl::unexpected(*std::move(problem));
  }
  NodePtr node = build_node(*row, call);
  if (!node && row->meaning == Meaning::os) {
    return tl::unexpected(std::string("a part of a version lies in 0..9999"));
  }
  if (!node) return tl::unexpected(std::string(kTooLarge));
  return node;
}

std::optional<Call> call_of(const Predicate::Node& node) {
  switch (node.kind) {
    case Kind::atom:
      return call_of_atom(node.atom);
    case Kind::unknown:
      return Call{"unknown", nullptr, {node.text}};
    case Kind::arch_gen:
      return plain_alias(Meaning::architecture_generation, node);
    case Kind::arch_suffix:
      return plain_alias(Meaning::architecture_suffix, node);
    case Kind::contains: {
      const CallRow* row = alias_over(Meaning::answer_has, node);
      if (row) return Call{std::string(row->name), nullptr, {node.text}};
      return Call{"contains", node.children[0], {node.text}};
    }
    case Kind::arithmetic:
      if (!is_binary(node, Operator::add, 1)) return std::nullopt;
      return plain_alias(Meaning::answer_plus_1, node);
    case Kind::compare:
      if (!is_binary(node, Operator::equal, 2)) return std::nullopt;
      return plain_alias(Meaning::answer_is_2, node);
    default:
      return std::nullopt;
  }
}

std::optional<std::string> string_problem(std::string_view text) {
  if (text.size() > kMaxString) return "a string has at most 1024 bytes";
  const bool control =
      std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (control) return "a string has no control characters";
  try {
    (void)Json(std::string(text)).dump();  // the JSON writer's own check
  } catch (const Json::exception&) {
    return "a string is valid UTF-8";
  }
  return std::nullopt;
}

}  // namespace metaldoctor::detail
