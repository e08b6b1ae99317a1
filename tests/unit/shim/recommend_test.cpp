#include "shim/recommend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <string>

#include "tables/host_answers.h"
#include "tests/unit/shim/recommend_cases.h"

namespace metaldoctor {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// llama.cpp on an M1 Ultra: two answers, and why no more.
TEST(Recommend, GgmlOnM1Ultra) {
  const auto result = run(stock_guest(), paths_of_specs({"ggml-metal"}), on_host("M1 Ultra"));
  EXPECT_EQ(changes(result), "supportsFamily:1006=yes supportsFamily:1007=yes");
  EXPECT_THAT(codes(result), IsEmpty());
  EXPECT_EQ(why(result, family(1008)), "above-host");
  EXPECT_EQ(why(result, family(1009)), "above-host");
  EXPECT_EQ(why(result, family(5001)), "hazard:metal3-residency-in-guest");
  EXPECT_THAT(why(result, family(5002)), HasSubstr("hazard:"));
  EXPECT_EQ(why(result, {"maxThreadgroupMemoryLength", {}}), "same-as-host");
  EXPECT_EQ(state(result, "/has_simdgroup_mm").verdict, PathVerdict::opens);
  EXPECT_THAT(state(result, "/has_simdgroup_mm").because, ElementsAre("supportsFamily:1007=yes"));
  EXPECT_EQ(state(result, "/has_bfloat").profile, Truth::yes);
  const PathState& tensor = state(result, "/has_tensor");
  EXPECT_EQ(tensor.verdict, PathVerdict::not_unlockable);
  EXPECT_THAT(tensor.because, Contains("name is 'Apple Paravirtual device'"));
  EXPECT_EQ(result.proof.candidates.size(), 2U);
  EXPECT_EQ(result.proof.assignments_examined, 4U);
  EXPECT_EQ(result.proof.minimal_sets, 1U);
  ASSERT_EQ(result.proof.drops.size(), 2U);
  EXPECT_THAT(result.proof.drops[0].closes, Contains("coherence: 1007 includes 1006"));
  EXPECT_EQ(result.profile.bound.chip, "M1 Ultra");
  EXPECT_EQ(result.profile.bound.os, "26.5.2");
}

TEST(Recommend, GgmlAsksForNoMoreOnANewerChip) {
  for (std::string_view chip : {"M3 Pro", "M4 Max", "M5"}) {
    const auto result = run(stock_guest(), paths_of_specs({"llama.cpp"}), on_host(chip));
    EXPECT_EQ(changes(result), "supportsFamily:1006=yes supportsFamily:1007=yes") << chip;
  }
  const auto m3 = run(stock_guest(), paths_of_specs({"ggml-metal"}), on_host("M3 Pro"));
  EXPECT_EQ(why(m3, family(1008)), "not-asked");
  EXPECT_EQ(why(m3, family(1010)), "above-host");
}

TEST(Recommend, HostFromTheCpuBrand) {
  Capture guest = stock_guest();
  const auto unknown = run(guest, paths_of_specs({"ggml-metal"}), {});
  EXPECT_THAT(codes(unknown), ElementsAre("host-unknown"));
  EXPECT_THAT(unknown.refusals[0].hint, HasSubstr("--host-chip"));
  EXPECT_EQ(changes(unknown), "");
  EXPECT_EQ(state(unknown, "/has_bfloat").verdict, PathVerdict::undetermined);
  EXPECT_EQ(state(unknown, "/has_tensor").verdict, PathVerdict::not_unlockable);

  guest.system.cpu_brand = "Apple M1 Ultra (Virtual)";
  const auto known = run(guest, paths_of_specs({"ggml-metal"}), {});
  EXPECT_EQ(changes(known), "supportsFamily:1006=yes supportsFamily:1007=yes");
}

TEST(Recommend, SettingsAreBoundedByTheHost) {
  const auto paths = paths_of_specs({"ggml-metal"});
  RecommendOptions options = on_host("M1 Ultra");
  options.set = {{family(1009), true}};
  auto result = run(stock_guest(), paths, options);
  EXPECT_THAT(codes(result), ElementsAre("above-host"));
  EXPECT_EQ(changes(result), "");
  EXPECT_EQ(state(result, "/has_bfloat").verdict, PathVerdict::would_open);
  EXPECT_EQ(state(result, "/has_bfloat").profile, Truth::no) << "the profile is empty";

  options.set = {{{"maxThreadgroupMemoryLength", {}}, std::int64_t{65536}}};
  EXPECT_THAT(codes(run(stock_guest(), paths, options)), ElementsAre("above-host"));
  options.set = {{family(1021), true}};
  EXPECT_THAT(codes(run(stock_guest(), paths, options)), ElementsAre("above-host"));

  options.set = {{family(5001), true}};
  result = run(stock_guest(), paths, options);
  ASSERT_THAT(codes(result), ElementsAre("hazard"));
  EXPECT_THAT(result.refusals[0].what, HasSubstr("metal3-residency-in-guest"));
  EXPECT_THAT(result.refusals[0].hint, HasSubstr("--accept-hazard metal3-residency-in-guest"));
  options.accepted_hazards = {"metal3-residency-in-guest"};
  result = run(stock_guest(), paths, options);
  EXPECT_THAT(codes(result), IsEmpty());
  EXPECT_EQ(changes(result),
            "supportsFamily:1006=yes supportsFamily:1007=yes supportsFamily:5001=yes");
  EXPECT_THAT(result.profile.accepted_hazards, ElementsAre("metal3-residency-in-guest"));

  options = on_host("M1 Ultra");
  options.set = {{family(1004), false}};  // 1005 includes it
  EXPECT_THAT(codes(run(stock_guest(), paths, options)), ElementsAre("incoherent"));
}

TEST(Recommend, UsageErrors) {
  const auto paths = paths_of_specs({"ggml-metal"});
  const auto code = [&](const RecommendOptions& options) {
    const auto result = recommend(tables(), stock_guest(), paths, options);
    return result ? "" : result.error().code;
  };
  RecommendOptions options = on_host("M1 Ultra");
  options.want = {"no_such_path"};
  EXPECT_EQ(code(options), "unknown-path");
  options = on_host("M1 Ultra");
  options.accepted_hazards = {"no-such-hazard"};
  EXPECT_EQ(code(options), "unknown-hazard");
  options = on_host("M1 Ultra");
  options.set = {{{"name", {}}, std::string("Apple M5")}};
  EXPECT_EQ(code(options), "not-overridable");
  options.set = {{family(1007), std::int64_t{1}}};
  EXPECT_EQ(code(options), "answer-type");
  options.set = {{family(1007), true}, {family(1007), false}};
  EXPECT_EQ(code(options), "set-twice");
  EXPECT_EQ(find_app(tables(), "no-such-app").error().code, "unknown-program");
  EXPECT_EQ(find_app(tables(), "ggml-metal@x").error().code, "unknown-range");
  EXPECT_EQ(find_app(tables(), "llama.cpp@b10167")->second->id, "G8");
}

TEST(Recommend, OnlyWhatIsWanted) {
  const auto paths = paths_of_specs({"ggml-metal"});
  RecommendOptions options = on_host("M1 Ultra");
  options.want = {"has_bfloat"};
  auto result = run(stock_guest(), paths, options);
  EXPECT_EQ(changes(result), "supportsFamily:1006=yes");
  EXPECT_EQ(state(result, "/has_simdgroup_mm").verdict, PathVerdict::not_wanted);
  options.want = {"kernel_mul_mm_f16_f32"};
  result = run(stock_guest(), paths, options);
  EXPECT_EQ(changes(result), "supportsFamily:1006=yes supportsFamily:1007=yes");
  EXPECT_FALSE(state(result, "/has_bfloat").wanted);
  EXPECT_EQ(state(result, "/has_bfloat").verdict, PathVerdict::not_wanted);
  EXPECT_THAT(state(result, "/has_bfloat").because, ElementsAre("changes too: no to yes"));
}

// MLX hangs on the architecture's name; the one family it asks for would end it.
TEST(Recommend, MlxHasNothingToGain) {
  RecommendOptions options = on_host("M1 Ultra");
  auto result = run(stock_guest(), paths_of_specs({"mlx"}), options);
  EXPECT_EQ(changes(result), "");
  EXPECT_THAT(codes(result), IsEmpty());
  EXPECT_EQ(state(result, "/residency_set_throw").verdict, PathVerdict::stays_closed);
  EXPECT_EQ(state(result, "/residency_set_throw").host, Truth::yes);
  const PathState& nax = state(result, "/is_nax_available");
  EXPECT_EQ(nax.verdict, PathVerdict::not_unlockable);
  EXPECT_THAT(nax.because, ElementsAre("architecture.name is 'air64_v27'"));

  // With the hazard accepted, what keeps the profile away is the harmful path itself.
  options.set = {{family(5001), true}};
  options.accepted_hazards = {"metal3-residency-in-guest"};
  result = run(stock_guest(), paths_of_specs({"mlx"}), options);
  EXPECT_THAT(codes(result), ElementsAre("hazard"));
  EXPECT_THAT(result.refusals[0].where, HasSubstr("residency_set_throw"));
}

TEST(Recommend, Apple6IsAHazardOfSomePrograms) {
  for (const char* program : {"slang-rhi", "moltenvk", "godot"}) {
    const auto result = run(stock_guest(), paths_of_specs({program}), on_host("M1 Ultra"));
    EXPECT_EQ(why(result, family(1006)), "hazard:apple6-residency-in-guest") << program;
    EXPECT_THAT(changes(result), Not(HasSubstr("1006"))) << program;
    EXPECT_THAT(codes(result), IsEmpty()) << program;
  }
  const auto godot = run(stock_guest(), paths_of_specs({"godot"}), on_host("M1 Ultra"));
  EXPECT_EQ(state(godot, "/simdPermute").verdict, PathVerdict::hazard);
  EXPECT_THAT(state(godot, "/simdPermute").because,
              Contains(HasSubstr("hazard apple6-residency-in-guest (godot)")));
  const auto slang = run(stock_guest(), paths_of_specs({"slang-rhi"}), on_host("M1 Ultra"));
  EXPECT_THAT(state(slang, "/device_ok").because, ElementsAre(HasSubstr("rset_ok() is no")));
}

TEST(Recommend, HazardsByOsAndByWhatAGateSends) {
  // Residency sets came with macOS 15.
  Path path = made_up("image/gate", "family(1006)");
  path.sends = {"newResidencySetWithDescriptor:error:"};
  RecommendOptions before15 = on_host("M1 Ultra");
  EXPECT_THAT(state(run(stock_guest("14.5"), {path}, before15), "/gate").because,
              ElementsAre("hazard compute-before-macos15 forbids supportsFamily:1006=yes"));
  before15.accepted_hazards = {"compute-before-macos15"};
  EXPECT_EQ(changes(run(stock_guest("14.5"), {path}, before15)), "supportsFamily:1006=yes");
  for (const char* os : {"15.0", ""}) {
    const auto result = run(stock_guest(os), {path}, on_host("M1 Ultra"));
    EXPECT_EQ(changes(result), "") << os;
    EXPECT_EQ(state(result, "/gate").verdict, PathVerdict::hazard) << os;
  }
  path.sends = {"newBufferWithLength:options:"};
  EXPECT_EQ(changes(run(stock_guest(), {path}, on_host("M1 Ultra"))), "supportsFamily:1006=yes");
}

TEST(Recommend, ProgramsInConflict) {
  const auto paths = paths_of_specs({"ggml-metal", "moltenvk"});
  const auto result = run(stock_guest(), paths, on_host("M1 Ultra"));
  EXPECT_THAT(codes(result), ElementsAre("conflict"));
  EXPECT_EQ(changes(result), "");
  bool named = false;
  for (const Conflict& conflict : result.conflicts) {
    EXPECT_THAT(conflict.path, HasSubstr("ggml-metal@"));
    named |= conflict.key == family(1006) &&
             conflict.against == "moltenvk: hazard apple6-residency-in-guest";
  }
  EXPECT_TRUE(named);

  const auto served =
      run(stock_guest(), paths_of_specs({"ggml-metal", "mlx", "tinygrad"}), on_host("M1 Ultra"));
  EXPECT_EQ(changes(served), "supportsFamily:1006=yes supportsFamily:1007=yes");
  EXPECT_THAT(served.conflicts, IsEmpty());
}

TEST(Recommend, ConflictThroughAHarmfulPath) {
  Path harm = made_up("b/crash", "family(1006) and family(1007)");
  harm.side = Rule::Side::harm;
  const Path low = made_up("a/low", "family(1006)");
  const Path high = made_up("a/high", "family(1007)");
  const auto result = run(stock_guest(), {low, high, harm}, on_host("M1 Ultra"));
  EXPECT_THAT(codes(result), ElementsAre("conflict"));
  ASSERT_FALSE(result.conflicts.empty());
  EXPECT_EQ(result.conflicts[0].path, "a/high");
  EXPECT_EQ(result.conflicts[0].against, "b: harmful path b/crash");

  // The same within one program is no conflict: what can be had is taken.
  harm.program = "a";
  const auto one = run(stock_guest(), {low, high, harm}, on_host("M1 Ultra"));
  EXPECT_THAT(codes(one), IsEmpty());
  EXPECT_EQ(changes(one), "supportsFamily:1006=yes");
  EXPECT_EQ(state(one, "/high").verdict, PathVerdict::hazard);
  EXPECT_THAT(state(one, "/high").because, ElementsAre("would open the harmful path b/crash"));
}

TEST(Recommend, VerdictsOfClosedPaths) {
  const std::vector<Path> paths{
      made_up("p/nine", "family(1009)"),
      made_up("p/bigger", "tgmem() > 32768"),
      made_up("p/named", "family(1006) and name_has('M5')"),
      made_up("p/env", "family(1006) and env('ON')"),
      made_up("p/unread", "family(1006) and unknown('not read')"),
      made_up("p/probe", "family(1006) and probe_compile('x')"),
      made_up("p/moot", "family(1006) or probe_compile('x')"),
      made_up("p/lower", "not family(1005)"),
  };
  const auto result = run(stock_guest(), paths, on_host("M1 Ultra"));
  EXPECT_EQ(state(result, "/nine").verdict, PathVerdict::above_host);
  EXPECT_EQ(state(result, "/bigger").verdict, PathVerdict::same_on_host);
  EXPECT_EQ(state(result, "/named").verdict, PathVerdict::not_unlockable);
  EXPECT_EQ(state(result, "/env").verdict, PathVerdict::not_unlockable);
  EXPECT_THAT(state(result, "/env").because, ElementsAre("env('ON') is no (taken as unset)"));
  EXPECT_EQ(state(result, "/unread").verdict, PathVerdict::undetermined);
  EXPECT_THAT(state(result, "/unread").because, ElementsAre("not read"));
  EXPECT_EQ(state(result, "/probe").verdict, PathVerdict::undetermined);
  EXPECT_THAT(state(result, "/probe").because, ElementsAre("probe_compile('x') is unknown"));
  EXPECT_EQ(state(result, "/moot").verdict, PathVerdict::opens);
  EXPECT_EQ(state(result, "/lower").verdict, PathVerdict::same_on_host);
  EXPECT_EQ(changes(result), "supportsFamily:1006=yes");

  RecommendOptions options = on_host("M1 Ultra");
  options.environment = {{"ON", true}};
  EXPECT_EQ(state(run(stock_guest(), paths, options), "/env").verdict, PathVerdict::opens);
}

TEST(Recommend, DriverFactsOfTheCaptureCount) {
  Path path = made_up("p/sets", "family(1006) and rset_ok()");
  Capture guest = stock_guest();
  EXPECT_EQ(state(run(guest, {path}, on_host("M1 Ultra")), "/sets").verdict,
            PathVerdict::not_unlockable);
  guest.facts.push_back({"rset_ok", true, Evidence::measured, {}});
  EXPECT_EQ(changes(run(guest, {path}, on_host("M1 Ultra"))), "supportsFamily:1006=yes");
}

TEST(Recommend, LowerFamiliesOfTheLineThatAreUnknownAreSetToo) {
  Capture guest;
  guest.name = "Apple Paravirtual device";
  answer(guest, family(1007), false);
  for (std::int64_t value : {1001, 1002, 1003, 1004, 1005}) answer(guest, family(value), true);
  const auto result = run(guest, {made_up("p/x", "family(1007)")}, on_host("M1"));
  EXPECT_EQ(changes(result), "supportsFamily:1006=yes supportsFamily:1007=yes");
  EXPECT_THAT(result.profile.changes[0].reason, HasSubstr("taken as stock paravirtual guests"));
  EXPECT_EQ(result.profile.changes[0].evidence, Evidence::inferred);

  answer(guest, family(5001), true);  // not as stock guests answer: nothing is taken from them
  const auto other = run(guest, {made_up("p/x", "family(1007)")}, on_host("M1"));
  EXPECT_EQ(changes(other), "supportsFamily:1006=yes supportsFamily:1007=yes");
  EXPECT_THAT(other.profile.changes[0].reason, HasSubstr("is not known"));
}

/// Everything a profile promises, checked without the code that made it.
void check_promises(const Capture& guest, const Recommendation& result, const std::string& label) {
  std::map<QueryKey, Value> changed;
  for (const ProfileChange& change : result.profile.changes) {
    const auto host = host_answer(tables(), *result.host, result.os, change.answer.key);
    ASSERT_TRUE(host) << label;
    EXPECT_EQ(change.answer.value, host->answer.value) << label;
    changed[change.answer.key] = change.answer.value;
  }
  const auto value = [&](std::int64_t of) {
    const auto found = changed.find(family(of));
    return found == changed.end() ? guest.answer(family(of)) : found->second;
  };
  for (const Family& whole : tables().families()) {
    for (const std::string& name : whole.implies) {
      const bool broken =
          value(whole.value) == Value{true} && value(tables().family(name)->value) == Value{false};
      EXPECT_FALSE(broken) << label << ": " << whole.short_name << " without " << name;
    }
  }
  EXPECT_FALSE(changed.contains(family(5001))) << label;
  for (const PathState& state : result.paths) {
    if (state.path.side == Rule::Side::harm && state.guest == Truth::no) {
      EXPECT_EQ(state.profile, Truth::no) << label << ": " << state.path.id;
    }
    if (state.verdict == PathVerdict::opens) {
      EXPECT_EQ(state.profile, Truth::yes) << label << ": " << state.path.id;
    } else if (state.wanted) {
      EXPECT_FALSE(state.because.empty()) << label << ": " << state.path.id;
    }
  }
  for (const auto& drop : result.proof.drops) EXPECT_FALSE(drop.closes.empty()) << label;
}

TEST(Recommend, EveryReleaseOnEveryChip) {
  const Capture guest = stock_guest();
  for (const Chip& chip : tables().chips()) {
    if (!chip.family) continue;  // refused
    for (const App& app : tables().apps()) {
      for (const AppRange& range : app.ranges) {
        RecommendOptions options;
        options.diagnose.host = &chip;
        const std::string label = chip.name + " " + app.id + "@" + range.id;
        const auto result = recommend(tables(), guest, paths_of(app, range), options);
        ASSERT_TRUE(result) << label << ": " << result.error().what;
        EXPECT_THAT(result->refusals, IsEmpty()) << label;
        check_promises(guest, *result, label);
      }
    }
  }
}

TEST(Recommend, AllProgramsAtOnce) {
  std::vector<std::string> specs;
  for (const App& app : tables().apps()) specs.push_back(app.id);
  const auto result = run(stock_guest(), paths_of_specs(specs), on_host("M4 Max"));
  EXPECT_THAT(codes(result), ElementsAre("conflict"));
  EXPECT_EQ(changes(result), "");
}

}  // namespace
}  // namespace metaldoctor
