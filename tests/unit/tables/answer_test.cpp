#include "tables/answer.h"

#include <gtest/gtest.h>

#include "tables/evidence.h"

namespace metaldoctor {
namespace {

TEST(Value, Prints) {
  EXPECT_EQ(to_string(Value()), "unknown");
  EXPECT_EQ(to_string(Value(true)), "yes");
  EXPECT_EQ(to_string(Value(false)), "no");
  EXPECT_EQ(to_string(Value(std::int64_t{32768})), "32768");
  EXPECT_EQ(to_string(Value(std::string("Apple M1"))), "'Apple M1'");
  EXPECT_FALSE(is_known(Value()));
  EXPECT_TRUE(is_known(Value(false)));
}

TEST(QueryKey, ParsesAndPrints) {
  struct Case {
    std::string text, query;
    std::vector<std::int64_t> arguments;
  };
  const Case cases[] = {
      {"supportsFamily:1007", "supportsFamily:", {1007}},
      {"supportsFamily:", "supportsFamily:", {}},
      {"maxThreadgroupMemoryLength", "maxThreadgroupMemoryLength", {}},
      {"architecture.name", "architecture.name", {}},
      {"supportsFamily:-1", "supportsFamily:", {-1}},
      {"two:1,2", "two:", {1, 2}},
      {"newResidencySetWithDescriptor:error:", "newResidencySetWithDescriptor:error:", {}},
  };
  for (const Case& one : cases) {
    const auto key = parse_query_key(one.text);
    ASSERT_TRUE(key.has_value()) << one.text;
    EXPECT_EQ(key->query, one.query);
    EXPECT_EQ(key->arguments, one.arguments);
    EXPECT_EQ(to_string(*key), one.text);
  }
}

TEST(QueryKey, RefusesWhatIsNone) {
  for (const std::string_view text :
       {"", ":", ":1007", "supports Family:1007", "supportsFamily:x", "supportsFamily:1007,",
        "supportsFamily:1,,2", "supportsFamily:0x3ef", "supportsFamily: 1007", "supportsFamily:1 ",
        "supportsFamily:99999999999999999999", "a=b"}) {
    const auto key = parse_query_key(text);
    ASSERT_FALSE(key.has_value()) << text;
    EXPECT_EQ(key.error().fault, Fault::usage);
  }
}

TEST(Answer, ParsesTheCommandLineForm) {
  EXPECT_EQ(parse_answer("supportsFamily:1009=yes"),
            (Answer{{"supportsFamily:", {1009}}, Value(true)}));
  EXPECT_EQ(parse_answer("hasUnifiedMemory=no"), (Answer{{"hasUnifiedMemory", {}}, Value(false)}));
  EXPECT_EQ(parse_answer("maxThreadgroupMemoryLength=32768"),
            (Answer{{"maxThreadgroupMemoryLength", {}}, Value(std::int64_t{32768})}));
}

TEST(Answer, RefusesWhatIsNone) {
  for (const std::string_view text :
       {"", "supportsFamily:1009", "supportsFamily:1009=", "supportsFamily:1009=true",
        "supportsFamily:1009=YES", "=yes", "maxThreadgroupMemoryLength=32k",
        "maxThreadgroupMemoryLength=99999999999999999999", "a=b=yes"}) {
    EXPECT_FALSE(parse_answer(text).has_value()) << text;
  }
}

TEST(Evidence, NamesAndOrder) {
  for (const Evidence level : {Evidence::measured, Evidence::executed, Evidence::read,
                               Evidence::documented, Evidence::inferred, Evidence::unknown}) {
    EXPECT_EQ(parse_evidence(to_string(level)), level);
  }
  EXPECT_EQ(parse_evidence("guessed"), std::nullopt);
  EXPECT_EQ(weaker(Evidence::measured, Evidence::inferred), Evidence::inferred);
  EXPECT_EQ(weaker(Evidence::unknown, Evidence::read), Evidence::unknown);
}

}  // namespace
}  // namespace metaldoctor
