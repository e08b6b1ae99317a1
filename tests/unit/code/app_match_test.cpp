#include "scanners/code/app_match.h"

#include <gtest/gtest.h>

#include "tests/unit/code/support.h"

namespace metaldoctor {
namespace {

Rule rule(std::string id, std::string_view predicate) {
  Rule out;
  out.id = std::move(id);
  out.predicate = *Predicate::parse(predicate);
  return out;
}

QuerySite site(std::string query, std::vector<std::int64_t> values) {
  QuerySite out;
  out.query = std::move(query);
  out.arguments.kind = values.empty() ? SiteArguments::Kind::none : SiteArguments::Kind::value;
  out.arguments.values = std::move(values);
  return out;
}

Gate flag(std::string id, std::string expr) {
  Gate out;
  out.id = std::move(id);
  out.expr = std::move(expr);
  out.where.kind = Gate::Where::Kind::field;
  return out;
}

TEST(RuleChecks, AgainstWhatWasFound) {
  Findings findings;
  findings.sites = {site("supportsFamily:", {1007}), site("supportsFamily:", {5001}),
                    site("supportsFamily:", {1006}), site("maxThreadgroupMemoryLength", {})};
  findings.gates = {flag("F-1", "family(5001) or family(1007)"),
                    flag("F-2", "family(1006) and family(5001)")};
  AppRange range;
  range.id = "R";
  range.rules = {rule("same", "family(1007) or family(5001)"),
                 rule("differs", "family(1006) or family(5001)"),
                 rule("asked", "family(1006) and tgmem() >= 4096"), rule("absent", "family(1009)")};
  App app;
  app.id = "app";
  const auto checks = check_rules(app, range, findings);
  ASSERT_EQ(checks.size(), 4u);
  EXPECT_EQ(checks[0].outcome, RuleCheck::Outcome::confirmed);
  EXPECT_EQ(checks[0].gate, "F-1");
  EXPECT_EQ(checks[1].outcome, RuleCheck::Outcome::contradicted);
  EXPECT_EQ(checks[1].gate, "F-2");
  EXPECT_EQ(checks[2].outcome, RuleCheck::Outcome::consistent);
  EXPECT_EQ(checks[3].outcome, RuleCheck::Outcome::contradicted);
  EXPECT_NE(checks[3].detail.find("supportsFamily:1009 is not asked"), std::string::npos);
  // A site with an unresolved argument, or a hidden wrapper, may be the one that asks.
  findings.hidden.push_back({"supportsFamily:", "wrapper"});
  EXPECT_EQ(check_rules(app, range, findings)[3].outcome, RuleCheck::Outcome::open);
}

// "architecture" that was sent to an object of unknown kind may ask the device.
TEST(RuleChecks, WhatIsNotProvenToAskADeviceIsNotAbsent) {
  Findings findings;
  AppRange range;
  range.id = "R";
  range.rules = {rule("generation", "arch_gen() >= 17")};
  App app;
  app.id = "app";
  EXPECT_EQ(check_rules(app, range, findings)[0].outcome, RuleCheck::Outcome::contradicted);
  findings.unproven["architecture"] = 1;
  EXPECT_EQ(check_rules(app, range, findings)[0].outcome, RuleCheck::Outcome::open);
}

TEST(AppMatch, RangesAreTheIntersectionOfTheMarkers) {
  const auto bytes =
      testing::read_file(std::filesystem::path(METALDOCTOR_MACHO_FIXTURES) / "queries_fast.dylib");
  if (bytes.empty()) GTEST_SKIP() << "SKIPPED: clang or ld64.lld was not there at build time";
  const auto file = MachOFile::read(bytes, "queries_fast.dylib");
  const auto image = Image::read(file->slices().at(0));
  App app;
  app.id = "app";
  for (const char* id : {"A", "B", "C", "D"}) {
    app.ranges.emplace_back();
    app.ranges.back().id = id;
  }
  struct Case {
    std::string what;
    std::vector<Marker> markers;
    std::string ranges;  ///< "-" = no match
  };
  const Case cases[] = {
      {"named, unbounded", {{"symbol", "_either_constant", "", "", ""}}, "ABCD"},
      {"from",
       {{"symbol", "_init", "", "", ""}, {"cstring", "FIXTURE_DISABLE", "B", "", ""}},
       "BCD"},
      {"both ends",
       {{"section", "__TEXT,__objc_stubs", "", "", ""},
        {"selector", "supportsFamily:", "B", "C", ""}},
       "BC"},
      {"contradiction",
       {{"symbol", "_init", "", "", ""},
        {"selector", "name", "C", "", ""},
        {"cstring", "M5", "", "B", ""}},
       ""},
      {"two range markers name it too",
       {{"selector", "name", "A", "C", ""}, {"cstring", "M5", "B", "", ""}},
       "BC"},
      {"one does not",
       {{"cstring", "M5", "B", "", ""}, {"cstring", "not there", "C", "", ""}},
       "-"},
      {"a part of a symbol is no symbol", {{"symbol", "_ini", "", "", ""}}, "-"},
      {"no such section", {{"section", "__DATA,__ggml_metallib", "", "", ""}}, "-"},
      {"by path", {{"path", "queries_fast", "", "", ""}}, "ABCD"},
      {"no shader source", {{"msl", "kernel", "", "", ""}}, "-"},
  };
  for (const Case& one : cases) {
    app.markers = one.markers;
    const auto matches = match_apps(std::span(&app, 1), *image, "queries_fast.dylib");
    if (one.ranges == "-") {
      EXPECT_TRUE(matches.empty()) << one.what;
      continue;
    }
    ASSERT_EQ(matches.size(), 1u) << one.what;
    std::string ranges;
    for (const std::string& range : matches[0].ranges) ranges += range;
    EXPECT_EQ(ranges, one.ranges) << one.what;
  }
}

TEST(Vocabulary, ComesFromTheTables) {
  const auto tables = Tables::embedded();
  ASSERT_TRUE(tables) << tables.error().what;
  const Vocabulary words = vocabulary(*tables);
  const Selector* family = words.selector("supportsFamily:");
  ASSERT_NE(family, nullptr);
  EXPECT_EQ(family->role, SelectorRole::query);
  EXPECT_EQ(family->integer_arguments, 1u);
  EXPECT_FALSE(family->ambiguous);
  EXPECT_TRUE(words.selector("name")->ambiguous);
  EXPECT_EQ(words.selector("threadExecutionWidth")->role, SelectorRole::pipeline_getter);
  EXPECT_EQ(words.function("_MTLCreateSystemDefaultDevice")->role, FunctionRole::device);
  EXPECT_EQ(words.selector("noSuchSelector:"), nullptr);
}

}  // namespace
}  // namespace metaldoctor
