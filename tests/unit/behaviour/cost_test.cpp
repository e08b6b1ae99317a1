#include "tests/unit/behaviour/cost.h"

namespace metaldoctor::testing {
namespace {

class Cost : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(, Cost, ::testing::Values("arm64", "x86_64"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(Cost, StaysWithinItsAims) {
  const LibraryCost cost = cost_of(emitted(apple7()), GetParam());
  EXPECT_GT(cost.constructor, 0u);
  EXPECT_LT(cost.constructor, 20'000u);
  EXPECT_GT(cost.passed_on, 0u);
  EXPECT_LE(cost.passed_on, 40u);
  EXPECT_LE(cost.imports, 24u);
  EXPECT_LE(cost.size, 36u * 1024);
}

}  // namespace
}  // namespace metaldoctor::testing
