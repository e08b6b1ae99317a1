#include "shim/branches.h"

#include <gmock/gmock.h>

namespace metaldoctor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Tables& tables() {
  static const Tables all = *Tables::embedded();
  return all;
}

AssumedDevice paravirtual() {
  return {"paravirtual",
          *read_capture(tables(), *tables().capture_text("paravirtual"), "paravirtual")};
}

Path path(std::string id, const char* predicate, Rule::Side side = Rule::Side::gain) {
  Path row;
  row.id = std::move(id);
  row.predicate = *Predicate::parse(predicate);
  row.side = side;
  return row;
}

struct Row {
  const char* predicate;
  Truth first, second;
  bool worse;
};
// A guest, and the least Mac chip: Apple7.
constexpr Row kAgainstTheLeastHost[] = {
    {"family(1007)", Truth::no, Truth::yes, true},
    {"not family(1007)", Truth::yes, Truth::no, true},
    {"family(1005)", Truth::yes, Truth::yes, false},
    {"family(1009)", Truth::no, Truth::no, false},
    {"tgmem() >= 65536", Truth::no, Truth::no, false},
    {"unknown('why')", Truth::unknown, Truth::unknown, false},
    {"family(1007) and rset_ok()", Truth::no, Truth::no, false},  // the host's answers, its driver
    {"family(1007) and name_has('M5')", Truth::no, Truth::no, false},
};

TEST(Branches, AGuestAgainstTheLeastHost) {
  std::vector<Path> paths;
  for (const Row& row : kAgainstTheLeastHost) paths.push_back(path(row.predicate, row.predicate));
  const auto result = compare_with_host(tables(), paravirtual(), paths, {});
  ASSERT_TRUE(result) << result.error().what;
  EXPECT_EQ(result->second, "M1");
  EXPECT_THAT(result->notes.at(0), HasSubstr("the host is not known: M1"));
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const Row& row = kAgainstTheLeastHost[i];
    const Branch& branch = result->branches[i];
    EXPECT_EQ(branch.first, row.first) << row.predicate;
    EXPECT_EQ(branch.second, row.second) << row.predicate;
    EXPECT_EQ(branch.is_worse, row.worse) << row.predicate;
  }
  EXPECT_THAT(result->branches[0].because, ElementsAre("supportsFamily:1007: no, yes"));
  EXPECT_EQ(result->count_worse(), 2u);
}

TEST(Branches, WhatIsOnlyLikelyOrHarmfulIsNoFinding) {
  const auto result = compare_with_host(tables(), paravirtual(),
                                        {path("likely", "family(1007)", Rule::Side::neutral),
                                         path("harm", "family(5001)", Rule::Side::harm)},
                                        {});
  for (const Branch& branch : result->branches) {
    EXPECT_TRUE(branch.differs) << branch.path.id;
    EXPECT_FALSE(branch.is_worse) << branch.path.id;
  }
}

TEST(Branches, ABetterHostIsTheOneNamed) {
  RecommendOptions options;
  options.diagnose.host = tables().chip("M3");
  const auto result =
      compare_with_host(tables(), paravirtual(), {path("nine", "family(1009)")}, options);
  EXPECT_EQ(result->second, "M3");
  EXPECT_TRUE(result->branches[0].is_worse);
}

TEST(Branches, AChipAgainstItselfIsTheSame) {
  for (const Chip& chip : tables().chips()) {
    if (!chip.mac || !chip.family) continue;
    const auto device = device_of_chip(tables(), chip, {});
    const auto result = compare_with_host(tables(), device, {path("seven", "family(1007)")}, {});
    ASSERT_TRUE(result) << chip.name << ": " << result.error().what;
    EXPECT_EQ(result->second, chip.name);
    EXPECT_FALSE(result->branches[0].differs) << chip.name;
  }
}

TEST(Branches, TwoChipsDifferByAnswersAndName) {
  const auto one = device_of_chip(tables(), *tables().chip("M1"), {});
  const auto two = device_of_chip(tables(), *tables().chip("M3"), {});
  const auto result = compare_devices(tables(), one, two,
                                      {path("nine", "family(1009)"), path("seven", "family(1007)"),
                                       path("named", "name_has('M3')")},
                                      {});
  EXPECT_TRUE(result.branches[0].differs);
  EXPECT_FALSE(result.branches[1].differs);
  EXPECT_TRUE(result.branches[2].differs);
  EXPECT_EQ(result.count_worse(), 0u) << "neither device is the better one";
  EXPECT_TRUE(result.has_findings());
  EXPECT_THAT(result.branches[1].because, IsEmpty());
}

}  // namespace
}  // namespace metaldoctor
