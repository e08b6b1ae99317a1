#include "scanners/code/expression.h"

#include <gtest/gtest.h>

#include "tables/predicate.h"

namespace metaldoctor {
namespace {

class ExpressionTest : public ::testing::Test {
 protected:
  ExprId family(std::int64_t n) { return e.answer({"supportsFamily:", {n}}, true); }
  ExprId tgmem() { return e.answer({"maxThreadgroupMemoryLength", {}}, false); }
  Expressions e;
};

TEST_F(ExpressionTest, PrintsTheGrammarAndParsesBack) {
  const ExprId a = family(1007), b = family(5001), v = e.env("X");
  const ExprId name = e.answer({"name", {}}, false);
  const std::pair<ExprId, std::string> cases[] = {
      {a, "family(1007)"},
      {e.either(a, b), "family(1007) or family(5001)"},
      {e.both(e.either(a, b), e.negation(v)), "(family(1007) or family(5001)) and not env('X')"},
      {e.compare(Compare::greater, tgmem(), e.number(16384)), "tgmem() > 16384"},
      {e.negation(e.compare(Compare::less, tgmem(), e.number(1))), "tgmem() >= 1"},
      {e.contains(name, "M5"), "contains(answer('name'), 'M5')"},
      {e.negation(e.equals(name, "Apple Paravirtual device")),
       "not answer('name') == 'Apple Paravirtual device'"},
      {e.compare(Compare::equal, e.arithmetic('/', tgmem(), e.number(4)), e.number(8)),
       "tgmem() / 4 == 8"},
      {e.both(e.os("15, 0"), e.unknown("value tested at 0x10")),
       "os(15, 0) and unknown('value tested at 0x10')"},
      {e.answer({"supportsCounterSampling:", {4}}, true), "answer('supportsCounterSampling:', 4)"},
  };
  for (const auto& [id, text] : cases) {
    EXPECT_EQ(e.print(id), text);
    const auto parsed = Predicate::parse(text);
    EXPECT_TRUE(parsed) << text << (parsed ? "" : parsed.error().what);
  }
}

TEST_F(ExpressionTest, Simplifies) {
  const ExprId a = family(1), b = family(2), c = family(3);
  const auto n = [&](ExprId id) { return e.negation(id); };
  const std::pair<ExprId, ExprId> same[] = {
      {n(n(a)), a},
      {e.either(a, n(a)), e.constant(true)},
      {e.both(a, n(a)), e.constant(false)},
      {e.either(a, e.both(a, b)), a},
      {e.either(a, e.both(n(a), b)), e.either(a, b)},
      {e.both(a, e.either(n(a), b)), e.both(a, b)},
      {e.either(e.both(a, b), e.both(a, n(b))), a},
      {n(e.either(a, b)), e.both(n(a), n(b))},
      {e.select(a, b, b), b},
      {e.select(a, e.constant(true), b), e.either(a, b)},
      {e.both(e.either(a, b), e.both(n(a), n(b))), e.constant(false)},
      {e.either(e.both(c, a), e.both(c, b)), e.both(c, e.either(a, b))},
      {e.compare(Compare::equal, a, e.number(1)), a},
      {e.compare(Compare::not_equal, a, e.number(1)), n(a)},
      {e.compare(Compare::greater, a, e.number(0)), a},
  };
  for (const auto& [left, right] : same) EXPECT_EQ(e.print(left), e.print(right));
}

TEST_F(ExpressionTest, GrowthIsBounded) {
  // Parity has no short form; it must become unknown, not large.
  ExprId all = family(0);
  for (int i = 1; i < 40; ++i) {
    e.allow_steps(10'000);
    all = e.select(all, e.negation(family(i)), family(i));
  }
  EXPECT_TRUE(e.has_unknown(all));
  EXPECT_LT(e.print(all).size(), 20'000u);
}

}  // namespace
}  // namespace metaldoctor
