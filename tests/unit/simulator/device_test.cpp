// Devices, wrappers, the order of events, and methods that an injected library replaces.
#include <gmock/gmock.h>

#include "harness.h"

namespace metaldoctor::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

class Devices : public EachArchitecture {};
INSTANTIATE_TEST_SUITE_P(, Devices, ::testing::Values("arm64", "x86_64"),
                         [](const auto& info) { return std::string(info.param); });

SimRequest hooked(const std::string& arch, std::vector<QueryKey> queries) {
  SimRequest asked = request(arch, "", {}, "libhook.dylib");
  asked.steps[1].kind = SimStep::Kind::ask;
  asked.steps[1].queries = std::move(queries);
  return asked;
}

std::vector<std::int64_t> answers(const Trace& trace) {
  std::vector<std::int64_t> all;
  for (const SimQuery& query : trace.queries) all.push_back(query.answer);
  return all;
}

TEST_P(Devices, AnswerFromTheCaptureOrTheRun) {
  SimRequest asked = request(GetParam(), "ask", {std::int64_t{1007}});
  asked.runs.push_back({"override", {family(1007, true)}, {}});
  const SimResult result = simulated(asked);
  EXPECT_EQ(outcome(result.runs[0]), "0");
  EXPECT_EQ(outcome(result.runs[1]), "1");
  ASSERT_EQ(result.runs[1].queries.size(), 1u);
  const SimQuery& query = result.runs[1].queries[0];
  EXPECT_EQ(to_string(query.key), "supportsFamily:1007");
  EXPECT_EQ(query.answer, 1);
  EXPECT_EQ(query.caller.substr(0, 20), "libpitfalls.dylib+0x");
  EXPECT_THAT(result.differences[0].queries_changed,
              ElementsAre("device 0: supportsFamily:1007: 0 -> 1"));
}

TEST_P(Devices, UnknownIsNoAndSaidToBe) {
  SimRequest asked = request(GetParam(), "ask", {std::int64_t{1099}});
  const Trace trace = simulated(asked).runs[0];
  EXPECT_EQ(outcome(trace), "0");
  EXPECT_THAT(trace.assumptions, Contains("device 0: supportsFamily:1099 is unknown, answered 0"));
}

TEST_P(Devices, NoDevice) {
  SimRequest asked = request(GetParam(), "ask", {std::int64_t{1001}});
  asked.devices.clear();
  EXPECT_EQ(outcome(simulated(asked).runs[0]), "0");
}

TEST_P(Devices, MetalAtStartLaterOrNever) {
  SimRequest asked = request(GetParam(), "metal_class_after_dlopen");
  EXPECT_EQ(outcome(simulated(asked).runs[0]), "111");
  asked.metal = SimMetal::linked;  // the fixture does not link Metal
  EXPECT_EQ(outcome(simulated(asked).runs[0]), "11");
  asked.metal = SimMetal::never;
  EXPECT_EQ(outcome(simulated(asked).runs[0]), "0");
}

TEST_P(Devices, OtherSystemsHaveMethodsOtherwise) {
  SimRequest asked = request(GetParam(), "method_of", {std::string("maxThreadgroupMemoryLength")});
  asked.system = {{"AppleParavirtDevice", "maxThreadgroupMemoryLength", {}}};
  EXPECT_NE(outcome(simulated(asked).runs[0]), "3");
  asked = request(GetParam(), "ask", {std::int64_t{1001}});
  asked.system = {{"_MTLDevice", "initGPUFamilySupport", {}}};
  EXPECT_EQ(outcome(simulated(asked).runs[0]), "1") << "the families are there all the same";
}

TEST_P(Devices, EventsInMetalsOrder) {
  SimRequest asked = request(GetParam(), "ask", {std::int64_t{1001}});
  asked.devices[0].wrapper = SimDevice::Wrapper::debug;
  EXPECT_THAT(
      simulated(asked).runs[0].events,
      ElementsAre("0: initWithAcceleratorPort:", "0: initLimits", "0: initFeatureQueries",
                  "0: initGPUFamilySupport", "0: initWorkarounds", "0: wrap MTLDebugDevice"));
}

TEST_P(Devices, MethodsAreWhereMetalHasThem) {
  const auto method_of = [&](SimDevice::Wrapper wrapper, const char* selector) {
    SimRequest asked = request(GetParam(), "method_of", {std::string(selector)});
    asked.devices[0].wrapper = wrapper;
    return outcome(simulated(asked).runs[0]);
  };
  using Wrapper = SimDevice::Wrapper;
  EXPECT_EQ(method_of(Wrapper::none, "supportsFamily:"), "7");
  EXPECT_EQ(method_of(Wrapper::none, "maxThreadgroupMemoryLength"), "3");
  EXPECT_EQ(method_of(Wrapper::none, "nobodyHasThis"), "0");
  EXPECT_EQ(method_of(Wrapper::debug, "supportsFamily:"), "7");
  // Arrives by message forwarding: no Method, and yet it answers.
  EXPECT_EQ(method_of(Wrapper::capture, "hasUnifiedMemory"), "2");
  EXPECT_EQ(method_of(Wrapper::capture, "supportsFamily:"), "7");
}

TEST_P(Devices, WrappersForward) {
  for (const auto wrapper : {SimDevice::Wrapper::debug, SimDevice::Wrapper::capture}) {
    SimRequest asked = request(GetParam(), "ask", {std::int64_t{1005}});
    asked.devices[0].wrapper = wrapper;
    const Trace trace = simulated(asked).runs[0];
    EXPECT_EQ(outcome(trace), "1");
    EXPECT_EQ(trace.queries.size(), 1u) << "one question, not one a hop";
  }
}

TEST_P(Devices, ResidencySetsFollowTheFact) {
  SimRequest asked = request(GetParam(), "residency");
  auto& facts = asked.devices[0].capture.facts;
  facts = {{"rset_ok", false, Evidence::measured, {}}};
  EXPECT_EQ(outcome(simulated(asked).runs[0]), "10") << "nil and an error";
  facts = {{"rset_ok", true, Evidence::measured, {}}};
  EXPECT_EQ(outcome(simulated(asked).runs[0]), "1");
  facts.clear();
  EXPECT_THAT(simulated(asked).runs[0].assumptions,
              Contains("device 0: whether residency sets work is unknown, they do here"));
}

TEST_P(Devices, AHookOnTheDriverClassLeavesOtherDevicesAlone) {
  SimRequest asked = hooked(GetParam(), {{"supportsFamily:", {1007}}, {"supportsFamily:", {1006}}});
  asked.devices.push_back(paravirtual());
  asked.devices[1].driver = "BronzeMtlDevice";
  const Trace trace = simulated(asked).runs[0];
  EXPECT_THAT(answers(trace), ElementsAre(1, 0, 0, 0));
  ASSERT_EQ(trace.overrides.size(), 2u);
  EXPECT_EQ(trace.overrides[0].class_name, "AppleParavirtDevice");
  EXPECT_TRUE(trace.overrides[0].added);
  EXPECT_EQ(trace.overrides[1].selector, "initGPUFamilySupport");
}

TEST_P(Devices, AHookOnTheInheritedMethodChangesAll) {
  SimRequest asked = hooked(GetParam(), {{"supportsFamily:", {1007}}});
  asked.environment = {{"HOOK_INHERITED", "1"}};
  asked.devices.push_back(paravirtual());
  asked.devices[1].driver = "BronzeMtlDevice";
  const Trace trace = simulated(asked).runs[0];
  EXPECT_THAT(answers(trace), ElementsAre(1, 1));
  EXPECT_EQ(trace.overrides[1].class_name, "_MTLDevice");
}

TEST_P(Devices, MetalsOwnSnapshotFollowsTheHook) {
  SimRequest plain = request(GetParam(), "ask", {std::int64_t{1007}});
  const Trace before = simulated(plain).runs[0];
  const Trace after = simulated(hooked(GetParam(), {{"supportsFamily:", {1007}}})).runs[0];
  EXPECT_THAT(before.metal_features, Not(Contains("familySupportsSIMDReduction")));
  EXPECT_THAT(after.metal_features, Contains("familySupportsSIMDReduction"));
  EXPECT_GT(after.metal_family_queries.at(1007), 10u);
}

TEST_P(Devices, FeatureSetsFollowFamilies) {
  // An override of a family shows in the older question too.
  const auto sets = tables().feature_sets();
  const auto row =
      std::ranges::find_if(sets, [](const FeatureSet& s) { return s.family.has_value(); });
  ASSERT_NE(row, sets.end());
  const std::int64_t value = tables().family(*row->family)->value;
  SimRequest asked = hooked(GetParam(), {{"supportsFeatureSet:", {row->value}}});
  asked.devices[0].capture.answers.clear();
  asked.runs = {{"no", {family(value, false)}, {}}, {"yes", {family(value, true)}, {}}};
  const SimResult result = simulated(asked);
  EXPECT_THAT(answers(result.runs[0]), ElementsAre(0));
  EXPECT_THAT(answers(result.runs[1]), ElementsAre(1));
}

}  // namespace
}  // namespace metaldoctor::testing
