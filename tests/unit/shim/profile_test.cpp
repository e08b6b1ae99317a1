#include "shim/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

namespace metaldoctor {
namespace {

const Tables& tables() {
  static const Tables loaded = std::move(*Tables::embedded());
  return loaded;
}

std::string document(std::string_view changes, std::string_view rest = "") {
  return R"({"schema":"metaldoctor.profile/1","bound":{"chip":"M1 Ultra"},"changes":[)" +
         std::string(changes) + "]" + std::string(rest) + "}";
}

TEST(Profile, ReadsWhatItWrites) {
  Profile profile;
  profile.bound = {"M1 Ultra", "26.5.2", "2026-12-01"};
  profile.changes = {{{{"supportsFamily:", {1007}}, true},
                      "needed",
                      Evidence::documented,
                      {"ggml-metal@G8/has_simdgroup_mm"}},
                     {{{"maxThreadgroupMemoryLength", {}}, std::int64_t{16384}},
                      "lowered",
                      Evidence::unknown,
                      {}}};
  profile.left_alone = {
      {{"supportsFamily:", {5001}}, "hazard:metal3-residency-in-guest", "why", Evidence::measured},
      {{"supportsFeatureSet:", {}}, "not-needed", "computed", Evidence::read},
      {{"name", {}}, "not-needed", "", Evidence::read}};
  profile.callers = Profile::Callers::app;
  profile.scope = Profile::Scope::tree;
  profile.accepted_hazards = {"apple6-residency-in-guest", "mlx@0.32.1/residency_set_throw"};

  const std::string text = to_json(profile).dump();
  const auto again = read_profile(tables(), text, "p.json");
  ASSERT_TRUE(again) << again.error().where << ": " << again.error().what;
  EXPECT_EQ(to_json(*again).dump(), text);
  EXPECT_EQ(again->changes[0].answer, profile.changes[0].answer);
  EXPECT_EQ(again->callers, Profile::Callers::app);
  EXPECT_EQ(again->scope, Profile::Scope::tree);
  EXPECT_EQ(again->left_alone.size(), 3U);
}

TEST(Profile, LargeIntegersAreDecimalStrings) {
  const std::string change = R"({"query":"maxBufferLength","answer":"9007199254740995"})";
  const auto profile = read_profile(tables(), document(change), "p.json");
  ASSERT_TRUE(profile) << profile.error().what;
  EXPECT_EQ(profile->changes[0].answer.value, Value{std::int64_t{9007199254740995}});
  EXPECT_EQ(to_json(*profile)["changes"][0]["answer"], "9007199254740995");
}

TEST(Profile, DefaultsOfAHandWrittenOne) {
  const auto profile = read_profile(
      tables(), R"({"schema":"metaldoctor.profile/1","bound":{},"changes":[]})", "p.json");
  ASSERT_TRUE(profile) << profile.error().what;
  EXPECT_EQ(profile->callers, Profile::Callers::all);
  EXPECT_EQ(profile->scope, Profile::Scope::process);
  EXPECT_EQ(profile->bound.chip, "");
}

TEST(Profile, RefusesWhatNoProfileCanHold) {
  struct Case {
    std::string text, code, where;
  };
  const std::string family = R"({"query":"supportsFamily:","arguments":[1007],"answer":true})";
  const std::array<Case, 8> cases{{
      {document(family + "," + family), "changed-twice", "p.json: /changes/1"},
      {document(R"({"query":"name","answer":"Apple M5"})"), "not-overridable",
       "p.json: /changes/0"},
      {document(R"({"query":"supportsFamily:","answer":true})"), "profile-argument",
       "p.json: /changes/0"},
      {document(R"({"query":"supportsFamily:","arguments":[1,2],"answer":true})"), "query-argument",
       "p.json: /changes/0"},
      {document(R"({"query":"supportsFamily:","arguments":[1007],"answer":1})"), "profile-answer",
       "p.json: /changes/0/answer"},
      {document(R"({"query":"maxBufferLength","answer":"12x"})"), "profile-answer",
       "p.json: /changes/0/answer"},
      {document(R"({"query":"maxBufferLength","answer":"99999999999999999999"})"), "profile-answer",
       "p.json: /changes/0/answer"},
      {document(R"({"query":"noSuchThing","answer":true})"), "query-unknown", "p.json: /changes/0"},
  }};
  for (const Case& c : cases) {
    const auto profile = read_profile(tables(), c.text, "p.json");
    ASSERT_FALSE(profile) << c.text;
    EXPECT_EQ(profile.error().code, c.code) << c.text;
    EXPECT_EQ(profile.error().where, c.where) << c.text;
    EXPECT_EQ(profile.error().fault, Fault::input) << c.text;
  }
}

TEST(Profile, TheSchemaRefusesTheRest) {
  const std::array<std::string, 7> bad{
      "",
      "[]",
      R"({"schema":"metaldoctor.profile/2","bound":{},"changes":[]})",
      R"({"schema":"metaldoctor.capture/1","bound":{},"changes":[]})",
      document("", R"(,"extra":1)"),
      document("", R"(,"scope":"machine")"),
      document("", R"(,"left_alone":[{"query":"name","why":"because"}])")};
  for (const std::string& text : bad) {
    const auto profile = read_profile(tables(), text, "p.json");
    ASSERT_FALSE(profile) << text;
    EXPECT_EQ(profile.error().fault, Fault::input) << text;
    EXPECT_THAT(profile.error().where, ::testing::HasSubstr("p.json")) << text;
  }
}

}  // namespace
}  // namespace metaldoctor
