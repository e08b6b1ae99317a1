// What recommend must not do: claim for a device it knows nothing of, override what the user or the
// guest says, hide what it assumed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/unit/shim/recommend_cases.h"

namespace metaldoctor {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Capture of_device(std::string name, std::string cpu_brand, std::optional<bool> unified) {
  Capture capture;
  capture.name = std::move(name);
  capture.system.cpu_brand = std::move(cpu_brand);
  for (std::int64_t value : {1006, 1007}) answer(capture, family(value), false);
  if (unified) answer(capture, {"hasUnifiedMemory", {}}, *unified);
  return capture;
}

TEST(RecommendBounds, NotAnAppleGpu) {
  const std::vector<Capture> guests{
      of_device("Intel(R) Iris(TM) Plus Graphics", "", std::nullopt),
      of_device("AMD Radeon Pro 5500M", "", std::nullopt),
      of_device("Apple Paravirtual device", "", false),
      of_device("Apple Paravirtual device", "Intel(R) Core(TM) i9-9880H CPU @ 2.30GHz", {}),
      Capture{},
  };
  for (const Capture& guest : guests) {
    const auto result = run(guest, paths_of_specs({"ggml-metal"}), on_host("M1 Ultra"));
    EXPECT_THAT(codes(result), ElementsAre("not-an-apple-gpu")) << guest.name;
    EXPECT_EQ(changes(result), "") << guest.name;
    EXPECT_EQ(result.profile.bound.chip, "") << guest.name;
    EXPECT_EQ(state(result, "/has_bfloat").verdict, PathVerdict::not_unlockable) << guest.name;
    EXPECT_THAT(result.notes, Each(Not(HasSubstr("every Mac chip")))) << guest.name;
  }
}

TEST(RecommendBounds, TheGuestsOwnNameOfItsHostCounts) {
  Capture guest = stock_guest();
  guest.system.cpu_brand = "Apple M1 (Virtual)";
  const auto result = run(guest, paths_of_specs({"ggml-metal"}), on_host("M4 Max"));
  ASSERT_THAT(codes(result), ElementsAre("host-contradiction"));
  EXPECT_THAT(result.refusals.front().what, AllOf(HasSubstr("M1"), HasSubstr("M4 Max")));
  EXPECT_EQ(changes(result), "");
}

TEST(RecommendBounds, AChipWithoutAFamilyBoundsNothing) {
  std::size_t chips = 0;
  for (const Chip& chip : tables().chips()) {
    if (chip.family) continue;
    ++chips;
    const auto result = run(stock_guest(), paths_of_specs({"ggml-metal"}), on_host(chip.name));
    ASSERT_THAT(codes(result), ElementsAre("host-unknown")) << chip.name;
    EXPECT_THAT(result.refusals.front().what, HasSubstr(chip.name));
    EXPECT_EQ(result.profile.bound.chip, "");
  }
  EXPECT_GT(chips, 0U);
}

TEST(RecommendBounds, HarmThatTheGuestTakesAlready) {
  Path flipped = made_up("p/flipped", "family(1005) and not rset_ok()");
  Path fixed = made_up("p/fixed", "name_has('Paravirtual') and not rset_ok()");
  Path both = made_up("p/both", "family(1005) or family(3003)");
  flipped.side = fixed.side = both.side = Rule::Side::harm;
  const auto result = run(stock_guest(), {flipped, fixed, both}, on_host("M1 Ultra"));
  for (const PathState& path : result.paths) {
    EXPECT_EQ(path.verdict, PathVerdict::harmful_open) << path.path.id;
  }
  EXPECT_THAT(state(result, "/flipped").because,
              ElementsAre("supportsFamily:1005=no would close it"));
  EXPECT_THAT(state(result, "/fixed").because, ElementsAre(HasSubstr("no answer closes it")));
  EXPECT_THAT(state(result, "/both").because, ElementsAre(HasSubstr("several other answers")));
  EXPECT_THAT(result.summary, HasSubstr("3 harmful and already taken"));
}

TEST(RecommendBounds, NoKnownHarmIsCalledAlreadyOpen) {
  for (const App& app : tables().apps()) {
    for (const AppRange& range : app.ranges) {
      const auto result = run(stock_guest(), paths_of(app, range), on_host("M1 Ultra"));
      for (const PathState& path : result.paths) {
        if (path.path.side != Rule::Side::harm || path.guest != Truth::yes) continue;
        EXPECT_EQ(path.verdict, PathVerdict::harmful_open) << path.path.id;
        EXPECT_THAT(path.because, Not(IsEmpty())) << path.path.id;
      }
    }
  }
}

TEST(RecommendBounds, WhatTheUserSetsToTheGuestsAnswerStays) {
  const auto paths = paths_of_specs({"ggml-metal"});
  RecommendOptions options = on_host("M1 Ultra");
  options.set = {{family(1007), false}};
  auto result = run(stock_guest(), paths, options);
  EXPECT_EQ(changes(result), "supportsFamily:1006=yes");
  EXPECT_EQ(why(result, family(1007)), "set");
  EXPECT_EQ(state(result, "/has_simdgroup_mm").verdict, PathVerdict::not_wanted);
  EXPECT_THAT(state(result, "/has_simdgroup_mm").because,
              ElementsAre("supportsFamily:1007=no was set by the user"));

  options.set = {{family(1006), false}};  // 1007 includes it
  result = run(stock_guest(), paths, options);
  EXPECT_EQ(changes(result), "");
  EXPECT_THAT(state(result, "/has_simdgroup_mm").because,
              Contains("supportsFamily:1006=no was set by the user"));

  options.set = {{family(1006), false}, {family(1007), true}};
  result = run(stock_guest(), paths, options);
  EXPECT_THAT(codes(result), ElementsAre("incoherent"));
}

TEST(RecommendBounds, NoUnsignedAnswerIsNegative) {
  std::size_t integers = 0;
  for (const Query& query : tables().queries()) {
    if (!query.overridable || query.type != AnswerType::integer || !query.argument.empty())
      continue;
    ++integers;
    RecommendOptions options = on_host("M1 Ultra");
    options.set = {{{query.selector, {}}, std::int64_t{-1}}};
    const auto result = recommend(tables(), stock_guest(), {}, options);
    ASSERT_FALSE(result) << query.selector;
    EXPECT_EQ(result.error().code, "answer-range") << query.selector;
    EXPECT_EQ(result.error().fault, Fault::usage);
  }
  EXPECT_GT(integers, 0U);
}

TEST(RecommendBounds, UnreadAnswersOfAStockGuest) {
  const auto result = run(stock_guest(), paths_of_specs({"moltenvk"}), on_host("M1 Ultra"));
  EXPECT_THAT(changes(result), Not(HasSubstr("supportsFamily:200")));
  EXPECT_THAT(result.notes, Contains(AllOf(HasSubstr("taken as stock paravirtual guests answer"),
                                           HasSubstr("supportsFamily:2002=yes"))));

  Capture overridden = stock_guest();
  overridden.facts.push_back({"override.tool", std::string("x"), Evidence::measured, {}});
  const auto other = run(overridden, paths_of_specs({"moltenvk"}), on_host("M1 Ultra"));
  EXPECT_THAT(other.notes, Each(Not(HasSubstr("stock paravirtual guests"))));
}

TEST(RecommendBounds, HazardsThatOnlyTheAssumedSystemRulesOut) {
  const auto note = Contains(AllOf(HasSubstr("ruled out only by the assumed macOS: "),
                                   HasSubstr("compute-before-macos15")));
  const auto paths = paths_of_specs({"ggml-metal"});
  EXPECT_THAT(run(stock_guest(""), paths, on_host("M1 Ultra")).notes, note);
  EXPECT_THAT(run(stock_guest("26.5"), paths, on_host("M1 Ultra")).notes, Not(note));
  RecommendOptions accepted = on_host("M1 Ultra");
  accepted.accepted_hazards = {"compute-before-macos15"};
  EXPECT_THAT(run(stock_guest(""), paths, accepted).notes, Not(note));
}

TEST(RecommendBounds, TheCompatibilityNameOfASystem) {
  RecommendOptions options = on_host("M1 Ultra");
  options.diagnose.os = OsVersion{16, 0, 0};
  const auto result = run(stock_guest(""), paths_of_specs({"ggml-metal"}), options);
  EXPECT_EQ(result.profile.bound.os, "26.0");
  EXPECT_THAT(result.notes, Contains(HasSubstr("taken as 26.0")));
}

TEST(RecommendBounds, ARefusalIsWholeInItself) {
  RecommendOptions options = on_host("M1 Ultra");
  options.set = {{family(5001), true}};
  const auto result = run(stock_guest(), paths_of_specs({"ggml-metal"}), options);
  ASSERT_THAT(codes(result), ElementsAre("hazard"));
  for (const PathState& path : result.paths) {
    EXPECT_NE(path.verdict, PathVerdict::opens) << path.path.id;
    EXPECT_EQ(path.profile, path.guest) << path.path.id;
  }
  EXPECT_EQ(state(result, "/has_bfloat").verdict, PathVerdict::would_open);
  EXPECT_THAT(result.summary, HasSubstr(result.refusals.front().what));
  EXPECT_THAT(result.notes, Contains(AllOf(HasSubstr(result.refusals.front().what),
                                           HasSubstr(result.refusals.front().hint))));
}

TEST(RecommendBounds, CountsAreThoseOfTheLists) {
  Path neutral = made_up("p/neutral", "family(1006)");
  Path closing = made_up("p/closing", "not family(1006)");
  neutral.side = closing.side = Rule::Side::neutral;
  const auto result =
      run(stock_guest(), {made_up("p/gain", "family(1006)"), neutral, closing}, on_host("M1"));
  EXPECT_EQ(result.summary, "1 changed answer(s) open 1 path(s)");
  EXPECT_EQ(std::ranges::count(result.paths, PathVerdict::opens, &PathState::verdict), 1);
  for (const auto& [id, change] : {std::pair("/neutral", "no to yes"), {"/closing", "yes to no"}}) {
    EXPECT_EQ(state(result, id).verdict, PathVerdict::not_wanted) << id;
    EXPECT_THAT(state(result, id).because, ElementsAre(std::string("changes too: ") + change));
  }
}

TEST(RecommendBounds, MessagesAreSentencesAndNameEachHazardOnce) {
  RecommendOptions options = on_host("M1 Ultra");
  options.set = {{family(5002), true}};
  options.accepted_hazards = {"metal4-in-guest"};
  const auto alone = run(stock_guest(), paths_of_specs({"ggml-metal"}), options);
  ASSERT_THAT(codes(alone), ElementsAre("incoherent"));
  EXPECT_EQ(alone.refusals.front().what,
            "supportsFamily:5002=yes cannot be set with the other answers as they are: "
            "supportsFamily:5002 includes supportsFamily:5001");

  const Path both = made_up("p/both", "family(1006) and family(1007)");
  const auto old = run(stock_guest("14.5"), {both}, on_host("M1 Ultra"));
  EXPECT_THAT(state(old, "/both").because,
              ElementsAre("hazard compute-before-macos15 forbids supportsFamily:1006=yes, "
                          "supportsFamily:1007=yes"));
}

}  // namespace
}  // namespace metaldoctor
