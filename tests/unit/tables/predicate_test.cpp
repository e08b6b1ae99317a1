#include "tables/predicate.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <map>
#include <random>
#include <string>

namespace metaldoctor {
namespace {

Predicate parse(std::string_view text) {
  auto predicate = Predicate::parse(text);
  EXPECT_TRUE(predicate) << text << ": " << predicate.error().where << ": "
                         << predicate.error().what;
  return predicate ? *predicate : Predicate();
}

World world_of(std::map<std::string, Value> values) {
  return [values = std::move(values)](const Atom& atom) {
    const auto found = values.find(to_string(atom));
    return found == values.end() ? Value{} : found->second;
  };
}

TEST(Predicate, PrintsTheShortestSpelling) {
  const std::array<std::array<std::string_view, 2>, 30> cases{{
      {"true", "true"},
      {" ( ( false ) ) ", "false"},
      {"answer('supportsFamily:', 1007)", "family(1007)"},
      {"answer('supportsFamily:')", "answer('supportsFamily:')"},
      {"answer('maxThreadgroupMemoryLength')", "tgmem()"},
      {"answer('argumentBuffersSupport') + 1 >= 2", "argtier() >= 2"},
      {"answer('location') == 2", "location_external()"},
      {"contains(answer('name'), 'M5')", "name_has('M5')"},
      {"contains((answer('architecture.name')), 'g13')",
       "contains(answer('architecture.name'), 'g13')"},
      {"answer('a:b:', 1, -2)", "answer('a:b:', 1, -2)"},
      {"os(15, 0, 0)", "os(15)"},
      {"os(26,2)", "os(26, 2)"},
      {"os(15, 6, 1)", "os(15, 6, 1)"},
      {"probe_compile('tensor') and rset_ok()", "probe_compile('tensor') and rset_ok()"},
      {"unknown('not read')", "unknown('not read')"},
      {"(family(1) or family(2)) and family(3)", "(family(1) or family(2)) and family(3)"},
      {"(family(1) and family(2)) or family(3)", "family(1) and family(2) or family(3)"},
      {"family(1) and (family(2) and family(3))", "family(1) and (family(2) and family(3))"},
      {"not (family(1))", "not family(1)"},
      {"not (not family(1))", "not not family(1)"},
      {"not (tgmem() > 1)", "not tgmem() > 1"},
      {"(not family(1)) == true", "(not family(1)) == true"},
      {"(tgmem() - 32 - 8192) / 4 > 6136", "(tgmem() - 32 - 8192) / 4 > 6136"},
      {"tgmem() - (32 - 8192)", "tgmem() - (32 - 8192)"},
      {"(tgmem() * 2) / 4 - -5", "tgmem() * 2 / 4 - -5"},
      {"tgmem() / (2 * 4)", "tgmem() / (2 * 4)"},
      {"(1 < 2) == (3 < 4)", "(1 < 2) == (3 < 4)"},
      {"env('it\\'s \\\\ it')", "env('it\\'s \\\\ it')"},
      {"arch_suffix() != 'p'", "arch_suffix() != 'p'"},
      {"-9007199254740992", "-9007199254740992"},
  }};
  for (const auto& [text, printed] : cases) {
    EXPECT_EQ(parse(text).print(), printed) << text;
    EXPECT_EQ(parse(printed), parse(text)) << text;
  }
}

TEST(Predicate, RefusesWithTheOffset) {
  struct Case {
    std::string_view text, where, what;
  };
  const std::array<Case, 17> cases{{
      {"", "p: offset 0", "expected a value, a call or '(', found the end"},
      {"family(1007", "p: offset 11", "expected ',' or ')', found the end"},
      {"family(1007) family(1)", "p: offset 13",
       "expected the end of the expression, found 'family'"},
      {"family()", "p: offset 0", "family takes one integer"},
      {"family('x')", "p: offset 0", "family takes one integer"},
      {"1 or famly(2)", "p: offset 5", "there is no call 'famly'"},
      {"family", "p: offset 6", "expected '(' after family, found the end"},
      {"and", "p: offset 0", "expected a value, a call or '(', found 'and'"},
      {"1 < 2 < 3", "p: offset 6", "expected the end of the expression, found '<'"},
      {"env('x", "p: offset 4", "expected an integer or a string, found a string without its end"},
      {"env('')", "p: offset 0", "env takes no empty string"},
      {"1 = 2", "p: offset 2",
       "expected the end of the expression, found a character that no expression has"},
      {"9007199254740993", "p: offset 0", "an integer lies in -2^53..2^53"},
      {"99999999999999999999", "p: offset 0", "an integer lies in -2^53..2^53"},
      {"os(1, 2, 3, 4)", "p: offset 0", "os takes one to three integers"},
      {"os(-1)", "p: offset 0", "a part of a version lies in 0..9999"},
      {"contains('s')", "p: offset 0", "contains takes an expression and a string"},
  }};
  for (const Case& c : cases) {
    const auto result = Predicate::parse(c.text, "p");
    ASSERT_FALSE(result) << c.text;
    EXPECT_EQ(result.error().where, c.where) << c.text;
    EXPECT_EQ(result.error().what, c.what) << c.text;
    EXPECT_EQ(result.error().code, "predicate-syntax");
  }
  EXPECT_FALSE(Predicate::parse("env('\x01')"));
  EXPECT_FALSE(Predicate::parse("env('\xff')"));
  EXPECT_TRUE(Predicate::parse("env('\xc3\xa9')"));
}

std::string repeat(std::string_view part, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += part;
  return out;
}

TEST(Predicate, BoundsDepthAndSize) {
  EXPECT_TRUE(Predicate::parse(repeat("not ", 199) + "true"));
  EXPECT_FALSE(Predicate::parse(repeat("not ", 200) + "true"));
  EXPECT_TRUE(Predicate::parse(repeat("(", 200) + "true" + repeat(")", 200)));
  EXPECT_FALSE(Predicate::parse(repeat("(", 201) + "true" + repeat(")", 201)));
  EXPECT_FALSE(Predicate::parse(repeat("(", 60'000)));
  EXPECT_FALSE(Predicate::parse(repeat("contains(", 5'000)));
  EXPECT_TRUE(Predicate::parse("1" + repeat(" + 1", 199)));
  EXPECT_FALSE(Predicate::parse("1" + repeat(" + 1", 200)));
  EXPECT_TRUE(Predicate::parse("true" + repeat(" or true", 5'000)));
  EXPECT_FALSE(Predicate::parse("1" + repeat(" or 1", 10'100)));
  EXPECT_FALSE(Predicate::parse(repeat(" ", 70'000) + "1"));

  Json deep = Json{{"const", true}};
  for (int i = 0; i < 199; ++i) deep = Json{{"not", std::move(deep)}};
  EXPECT_TRUE(Predicate::from_json(deep));
  EXPECT_EQ(Predicate::from_json(deep)->print(), repeat("not ", 199) + "true");
  EXPECT_FALSE(Predicate::from_json(Json{{"not", std::move(deep)}}));
}

TEST(Predicate, JsonFormIsStrict) {
  const std::array<std::string_view, 16> bad{"1",
                                             "[]",
                                             "{}",
                                             R"({"q":"family"})",
                                             R"({"q":"family","args":1007})",
                                             R"({"q":"family","args":[1.5]})",
                                             R"({"q":"family","args":[[1]]})",
                                             R"({"q":"family","args":[1007],"x":1})",
                                             R"({"and":[]})",
                                             R"({"not":true})",
                                             R"({"cmp":"+","l":{"const":1},"r":{"const":1}})",
                                             R"({"arith":"<","l":{"const":1},"r":{"const":1}})",
                                             R"({"const":null})",
                                             R"({"const":18446744073709551615})",
                                             R"({"const":9007199254740993})",
                                             R"({"q":"contains","args":["name","x"]})"};
  for (std::string_view text : bad) {
    EXPECT_FALSE(Predicate::from_json(Json::parse(text))) << text;
  }
  const auto nested = Predicate::from_json(
      Json::parse(R"({"and":[{"const":true},{"not":{"q":"os","args":["15"]}}]})"), "rule");
  ASSERT_FALSE(nested);
  EXPECT_EQ(nested.error().where, "rule/and/1/not");
}

// The predicates of real programs, each as its text and as the tree that was made of it by hand.
TEST(Predicate, TextAndTreeOfProgramsAgree) {
  std::ifstream in(METALDOCTOR_TESTDATA "/predicates/programs.json");
  const Json cases = Json::parse(in);
  ASSERT_GE(cases.size(), 60U);
  for (const Json& c : cases) {
    const std::string text = c["text"];
    const Predicate predicate = parse(text);
    const auto tree = Predicate::from_json(c["ast"], text);
    ASSERT_TRUE(tree) << text << ": " << tree.error().where << ": " << tree.error().what;
    EXPECT_EQ(predicate, *tree) << predicate.print() << " is not " << tree->print();
    EXPECT_EQ(parse(predicate.print()), predicate) << text;
    EXPECT_EQ(Predicate::from_json(predicate.to_json()), predicate) << text;
  }
}

TEST(Predicate, Evaluates) {
  const World world = world_of({{"supportsFamily:1007", true},
                                {"supportsFamily:1008", false},
                                {"maxThreadgroupMemoryLength", std::int64_t{32768}},
                                {"argumentBuffersSupport", std::int64_t{1}},
                                {"location", std::int64_t{2}},
                                {"name", std::string("Apple Paravirtual device")},
                                {"architecture.name", std::string("air64_v27")},
                                {"env('X')", true},
                                {"os(15)", true},
                                {"rset_ok()", false},
                                {"probe_compile('tensor')", false},
                                {"build('SDK15')", true}});
  const std::array<std::pair<std::string_view, Truth>, 28> cases{{
      {"family(1007) and not family(1008)", Truth::yes},
      {"family(1009)", Truth::unknown},
      {"family(1009) and family(1008)", Truth::no},
      {"family(1009) or family(1007)", Truth::yes},
      {"not family(1009)", Truth::unknown},
      {"tgmem() > 32768", Truth::no},
      {"(tgmem() / 2 - 8192) / 4 > 2047", Truth::yes},
      {"(0 - 7) / 2 == -3", Truth::yes},
      {"1 / 0 == 0", Truth::unknown},
      {"9007199254740992 * 9007199254740992 > 0", Truth::unknown},
      {"tgmem()", Truth::unknown},
      {"1 == true", Truth::unknown},
      {"1 != 'a'", Truth::unknown},
      {"'a' < 'b'", Truth::unknown},
      {"'a' != 'b'", Truth::yes},
      {"true == false", Truth::no},
      {"argtier() == 2", Truth::yes},
      {"location_external()", Truth::yes},
      {"name_has('Paravirtual')", Truth::yes},
      {"name_has('M5')", Truth::no},
      {"contains(tgmem(), '3')", Truth::unknown},
      {"arch_gen() == 2 and arch_suffix() == '7'", Truth::yes},
      {"env('X') and os(15) and build('SDK15')", Truth::yes},
      {"os(26)", Truth::unknown},
      {"rset_ok() or probe_compile('tensor')", Truth::no},
      {"probe_compile('other')", Truth::unknown},
      {"unknown('x') or true", Truth::yes},
      {"unknown('x')", Truth::unknown},
  }};
  for (const auto& [text, truth] : cases) EXPECT_EQ(parse(text).evaluate(world), truth) << text;
}

TEST(Predicate, ArchitectureByMlxRule) {
  struct Case {
    std::string_view name;
    std::int64_t generation;
    std::string_view suffix;
  };
  const std::array<Case, 7> cases{{{"applegpu_g13d", 13, "d"},
                                   {"applegpu_g17s", 17, "s"},
                                   {"air64_v26", 2, "6"},
                                   {"abc", 0, "c"},
                                   {"1x", 1, "x"},
                                   {"9", 0, "9"},
                                   {"g1xd", 10, "d"}}};
  for (const Case& c : cases) {
    const World world = world_of({{"architecture.name", std::string(c.name)}});
    EXPECT_EQ(parse("arch_gen()").value(world), Value{c.generation}) << c.name;
    EXPECT_EQ(parse("arch_suffix()").value(world), Value{std::string(c.suffix)}) << c.name;
  }
  const World empty = world_of({{"architecture.name", std::string()}});
  EXPECT_FALSE(is_known(parse("arch_gen()").value(empty)));
}

TEST(Predicate, AtomsAreCanonical) {
  const Predicate predicate = parse(
      "(family(1007) or answer('supportsFamily:', 1007) or argtier() == 2 or name_has('M5')) and "
      "arch_gen() > 1 and os(15,0) and os(15) and env('X') and probe_compile('t') and "
      "unknown('why')");
  std::string names;
  for (const Atom& atom : predicate.atoms()) names += to_string(atom) + " ";
  EXPECT_EQ(names,
            "architecture.name argumentBuffersSupport name supportsFamily:1007 "
            "probe_compile('t') os(15) env('X') ");
  EXPECT_EQ(predicate.unknown_reasons(), std::set<std::string>{"why"});
}

constexpr std::array kTruths{Truth::no, Truth::yes, Truth::unknown};

// Exhaustive over the three values.
TEST(Kleene, Laws) {
  for (Truth a : kTruths) {
    EXPECT_EQ(!!a, a);
    EXPECT_EQ(a && Truth::yes, a);
    EXPECT_EQ(a || Truth::no, a);
    EXPECT_EQ(a && Truth::no, Truth::no);
    EXPECT_EQ(a || Truth::yes, Truth::yes);
    EXPECT_EQ(a && a, a);
    EXPECT_EQ(a || a, a);
    for (Truth b : kTruths) {
      EXPECT_EQ(a && b, b && a);
      EXPECT_EQ(a || b, b || a);
      EXPECT_EQ(!(a && b), (!a || !b));
      EXPECT_EQ(!(a || b), (!a && !b));
      EXPECT_EQ((a && (a || b)), a);
      for (Truth c : kTruths) {
        EXPECT_EQ((a && b) && c, a && (b && c));
        EXPECT_EQ((a || b) || c, a || (b || c));
        EXPECT_EQ(a && (b || c), ((a && b) || (a && c)));
      }
    }
  }
  EXPECT_EQ(!Truth::unknown, Truth::unknown);
  EXPECT_EQ(Truth::unknown && Truth::yes, Truth::unknown);
  EXPECT_EQ(Truth::unknown || Truth::no, Truth::unknown);
  EXPECT_EQ(to_string(Truth::no), "no");
  EXPECT_EQ(to_string(Truth::yes), "yes");
  EXPECT_EQ(to_string(Truth::unknown), "unknown");
}

/// Random expressions in the JSON form, which is the shape of the tree.
class Generator {
 public:
  explicit Generator(std::uint32_t seed) : random_(seed) {}

  std::size_t pick(std::size_t count) { return random_() % count; }

  Json truth(int depth) {
    if (depth <= 0) return leaf();
    switch (pick(6)) {
      case 0:
        return list("and", depth);
      case 1:
        return list("or", depth);
      case 2:
        return Json{{"not", truth(depth - 1)}};
      case 3:
        return compare(depth);
      case 4:
        return call("contains", {text(depth - 1), "M"});
      default:
        return leaf();
    }
  }

 private:
  static Json call(std::string_view name, Json args) {
    return Json{{"q", name}, {"args", std::move(args)}};
  }
  Json leaf() {
    switch (pick(9)) {
      case 0:
        return call("env", Json::array({"it's \\ it"}));
      case 1:
        return call("os", Json::array({15, 2}));
      case 2:
        return call("rset_ok", Json::array());
      case 3:
        return call("unknown", Json::array({"not read"}));
      case 4:
        return Json{{"const", pick(2) == 0}};
      case 5:
        return call("answer", Json::array({"supportsFamily:", 1006}));
      default:
        return call("family", Json::array({1005 + pick(4)}));
    }
  }
  Json list(const char* word, int depth) {
    Json parts = Json::array();
    for (std::size_t n = 2 + pick(3); n > 0; --n) parts.push_back(truth(depth - 1));
    return Json{{word, std::move(parts)}};
  }
  Json compare(int depth) {
    constexpr std::array<std::string_view, 6> ops{"==", "!=", "<", "<=", ">", ">="};
    const bool numbers = pick(4) != 0;
    Json left = numbers ? number(depth - 1) : truth(depth - 1);
    Json right = numbers ? number(depth - 1) : truth(depth - 1);
    return Json{{"cmp", ops[pick(ops.size())]}, {"l", std::move(left)}, {"r", std::move(right)}};
  }
  Json number(int depth) {
    constexpr std::array<std::string_view, 4> ops{"+", "-", "*", "/"};
    if (depth > 0 && pick(2) == 0) {
      return Json{
          {"arith", ops[pick(ops.size())]}, {"l", number(depth - 1)}, {"r", number(depth - 1)}};
    }
    switch (pick(4)) {
      case 0:
        return call("tgmem", Json::array());
      case 1:
        return call("argtier", Json::array());
      case 2:
        return call("answer", Json::array({"argumentBuffersSupport"}));
      default:
        return Json{{"const", static_cast<std::int64_t>(pick(7)) - 3}};
    }
  }
  Json text(int depth) {
    if (depth > 0 && pick(4) == 0) return truth(depth - 1);
    return pick(2) == 0 ? call("answer", Json::array({"name"}))
                        : Json{{"const", "Apple M5's \\ device"}};
  }

  std::mt19937 random_;
};

TEST(PredicateProperty, BothFormsRoundTrip) {
  Generator generator(20261201);
  for (int i = 0; i < 5'000; ++i) {
    const auto tree = Predicate::from_json(generator.truth(i % 7));
    ASSERT_TRUE(tree) << tree.error().what;
    const std::string printed = tree->print();
    const auto again = Predicate::parse(printed);
    ASSERT_TRUE(again) << printed << ": " << again.error().where << ": " << again.error().what;
    ASSERT_EQ(*again, *tree) << printed << " became " << again->print();
    const auto json = Predicate::from_json(tree->to_json());
    ASSERT_TRUE(json) << printed;
    ASSERT_EQ(*json, *tree) << printed;
  }
}

Value random_value(Generator& generator, const Atom& atom) {
  if (atom.kind != AtomKind::answer || atom.key.query == "supportsFamily:") {
    return generator.pick(2) == 0;
  }
  if (atom.key.query == "name") return std::string(generator.pick(2) == 0 ? "M5" : "x");
  return static_cast<std::int64_t>(generator.pick(4));
}

// Learning an unknown never takes back what was already known.
TEST(PredicateProperty, EvaluationIsMonotone) {
  Generator generator(7);
  int settled = 0;
  for (int i = 0; i < 5'000; ++i) {
    const auto predicate = Predicate::from_json(generator.truth(1 + i % 6));
    ASSERT_TRUE(predicate);
    std::map<std::string, Value> known, refined;
    for (const Atom& atom : predicate->atoms()) {
      const Value value = random_value(generator, atom);
      if (generator.pick(2) == 0) known[to_string(atom)] = value;
      refined[to_string(atom)] = value;
    }
    const Truth before = predicate->evaluate(world_of(known));
    if (before == Truth::unknown) continue;
    ++settled;
    ASSERT_EQ(predicate->evaluate(world_of(refined)), before) << predicate->print();
  }
  EXPECT_GT(settled, 500);
}

}  // namespace
}  // namespace metaldoctor
