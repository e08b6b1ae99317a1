// What verify finds when it executes libraries: emitted ones, the template, others.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/unit/behaviour/support.h"

namespace metaldoctor::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kExecuted[] = {
    "runs",   "answers", "other-device", "wrapped-device", "moments",   "methods",      "calls",
    "output", "writes",  "environment",  "configuration",  "malformed", "other-system", "twice"};

void expect_all_passed(const VerifyReport& report) {
  for (const VerifyCheck& check : report.checks) {
    EXPECT_EQ(outcome(report, check.id), "passed") << check.id;
  }
  for (const char* id : kExecuted) {
    ASSERT_TRUE(report.check(id)) << id;
    EXPECT_EQ(report.check(id)->evidence, Evidence::executed) << id;
  }
  EXPECT_EQ(report.verdict(), VerifyReport::Verdict::passed);
}

TEST(VerifyBehaviour, AnEmittedLibraryDoesWhatItsProfileSays) {
  const Profile wanted = apple7();
  BehaviourOptions options;
  options.expected = &wanted;
  const VerifyReport report = verified(emitted(wanted), options);
  expect_all_passed(report);
  EXPECT_EQ(report.check("answers")->detail,
            "2 of 115 answers changed, exactly those of the profile");
  EXPECT_EQ(report.check("methods")->detail,
            "replaces supportsFamily: of AppleParavirtDevice, initGPUFamilySupport of _MTLDevice");
}

struct Kind {
  const char* name;
  Profile wanted;
  EmitOptions options;
};
void PrintTo(const Kind& kind, std::ostream* out) {
  *out << kind.name;
}
std::vector<Kind> kinds() {
  EmitOptions app, tree, observe, above;
  app.callers = Profile::Callers::app;
  tree.scope = Profile::Scope::tree;
  observe.observe = true;
  above.allow_above_host = true;
  const Answer memory{{"maxThreadgroupMemoryLength", {}}, std::int64_t{16384}};
  const Answer unified{{"hasUnifiedMemory", {}}, false};
  return {{"tree", apple7(), tree},
          {"observe", apple7(), observe},
          {"above", profile({family(1009)}), above},
          {"lowered", profile({family(1001, false), memory, unified}), {}},
          {"nothing", profile({}, ""), {}},
          {"same", profile({family(1005)}), {}}};
}
class VerifyKinds : public ::testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(, VerifyKinds, ::testing::ValuesIn(kinds()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(VerifyKinds, Passes) {
  expect_all_passed(verified(emitted(GetParam().wanted, GetParam().options)));
}

TEST(VerifyBehaviour, ForCallersOutsideTheSharedCache) {
  EmitOptions options;
  options.callers = Profile::Callers::app;
  const VerifyReport report = verified(emitted(apple7(), options));
  for (const VerifyCheck& check : report.checks) {
    if (check.id == "wrapped-device") continue;
    EXPECT_EQ(outcome(report, check.id), "passed") << check.id;
  }
  EXPECT_EQ(report.verdict(), VerifyReport::Verdict::passed);
  EXPECT_THAT(outcome(report, "wrapped-device"), StartsWith("not applicable: for callers=app"));
}

TEST(VerifyBehaviour, ATemplateFollowsItsVariableOnly) {
  const VerifyReport report = verified(embedded_template());
  expect_all_passed(report);
  EXPECT_THAT(report.check("configuration")->detail, HasSubstr("it does nothing"));
}

TEST(VerifyBehaviour, AnArm64eSliceIsNotExecuted) {
  EmitOptions options;
  options.arm64e = true;
  const VerifyReport report = verified(emitted(apple7(), options));
  expect_all_passed(report);
  EXPECT_THAT(report.cannot_prove, Contains(HasSubstr("arm64e")));
}

TEST(VerifyBehaviour, OnTheDeviceOfACapture) {
  BehaviourOptions options;
  const auto capture = read_capture(tables(), *tables().capture_text("cua-2026-08-stock"), "stock");
  options.capture = to_json(*capture);
  expect_all_passed(verified(emitted(apple7()), options));
  options.bare_metal = true;
  expect_all_passed(verified(emitted(apple7()), options));
}

TEST(VerifyBehaviour, AJournalThatIsAskedForIsNoOffence) {
  BehaviourOptions options;
  options.environment = {{"METALDOCTOR_JOURNAL", "/asked/for"}};
  expect_all_passed(verified(emitted(apple7()), options));
}

// The bytes say one profile, the file was asked for another.
TEST(VerifyBehaviour, AnotherProfileThanExpectedFails) {
  const Profile other = profile({family(1006)});
  BehaviourOptions options;
  options.expected = &other;
  const VerifyReport report = verified(emitted(apple7()), options);
  EXPECT_EQ(report.verdict(), VerifyReport::Verdict::failed);
  EXPECT_THAT(outcome(report, "profile"), StartsWith("failed"));
}

// The kind of library that was published before: it changes the inherited method.
TEST(VerifyBehaviour, ASwizzlingLibraryChangesEveryDevice) {
  const auto library = bytes_of(METALDOCTOR_SWIZZLE);
  const Profile wanted = profile({family(1006), family(1007)});
  BehaviourOptions options;
  options.expected = &wanted;
  options.environment = {{"SWIZZLE_FAMILY_MAX", "1007"}};
  const VerifyReport report = verified(library, options);
  EXPECT_EQ(report.verdict(), VerifyReport::Verdict::failed);
  EXPECT_EQ(outcome(report, "answers"), "passed");
  EXPECT_THAT(outcome(report, "other-device"),
              HasSubstr("x86_64, arm64: 2 answer(s) of a device of another class are changed too: "
                        "supportsFamily:1006 no -> yes"));
  EXPECT_THAT(outcome(report, "methods"),
              HasSubstr("supportsFamily: of _MTLDevice is replaced: every class that inherits it "
                        "answers otherwise, process-wide"));
  EXPECT_THAT(outcome(report, "other-system"),
              HasSubstr("where initGPUFamilySupport is encoded otherwise"))
      << "it does not look at encodings";
}

TEST(VerifyBehaviour, ASwizzlingLibraryWithoutAnybodysWord) {
  const auto library = bytes_of(METALDOCTOR_SWIZZLE);
  BehaviourOptions options;
  EXPECT_THAT(outcome(verified(library, options), "answers"),
              HasSubstr("it changes no answer in this environment"));
  options.environment = {{"SWIZZLE_FAMILY_MAX", "1009"}};
  const VerifyReport report = verified(library, options);
  EXPECT_THAT(outcome(report, "answers"),
              HasSubstr("it changes 4: supportsFamily:1006 no -> yes, supportsFamily:1007"));
  EXPECT_THAT(outcome(report, "malformed"), StartsWith("not applicable"));
}

TEST(VerifyBehaviour, FlipsOfMetalItself) {
  BehaviourOptions options;
  options.flips = true;
  const VerifyReport report = verified(emitted(apple7()), options);
  ASSERT_EQ(report.flips.size(), 2u);
  EXPECT_EQ(report.flips[0].callers, Profile::Callers::all);
  EXPECT_THAT(report.flips[0].gained, Contains("familySupportsSIMDReduction"));
  EXPECT_EQ(report.flips[0].gained.size(), 56u);
  EXPECT_THAT(report.flips[0].lost, IsEmpty());
  EXPECT_EQ(report.flips[1].callers, Profile::Callers::app);
  EXPECT_THAT(report.flips[1].gained, IsEmpty());
}

// Each kind of damage to the code itself: what it does is wrong, not only how it looks.
TEST(VerifyBehaviour, AFaultIsNamed) {
  std::vector<std::uint8_t> library = emitted(apple7());
  const auto file = MachOFile::read(library, "library");
  for (const Slice& slice : file->slices()) {
    const auto image = Image::read(slice);
    const Section* text = image->section("__TEXT", "__text");
    std::fill_n(library.begin() + static_cast<std::ptrdiff_t>(slice.offset + text->file_offset),
                text->bytes.size(), std::uint8_t{0});
  }
  const VerifyReport report = verified(library);
  EXPECT_EQ(report.verdict(), VerifyReport::Verdict::failed);
  EXPECT_THAT(outcome(report, "runs"), HasSubstr("at its start: "));
}

TEST(VerifyBehaviour, AResultThatIsNoneIsAnError) {
  const auto library = emitted(apple7());
  for (const char* text : {"{}", "[]", "null", R"({"schema":"metaldoctor.sim-result/1"})",
                           R"({"schema":"metaldoctor.sim-result/1","evidence":"executed","runs":[],
                               "differences":[],"assumptions":[]})"}) {
    auto report = verify_static(tables(), library, "library");
    const auto done = verify_behaviour(
        tables(), library, {}, [&](const Json&) -> Result<Json> { return Json::parse(text); },
        *report);
    EXPECT_FALSE(done) << text;
  }
}

TEST(VerifyBehaviour, WithoutASimulatorTheVerdictIsIncomplete) {
  auto report = verify_static(tables(), emitted(apple7()), "library");
  behaviour_not_checked("there is none", *report);
  EXPECT_EQ(report->verdict(), VerifyReport::Verdict::incomplete);
  EXPECT_FALSE(report->passed());
  EXPECT_EQ(outcome(*report, "answers"), "not checked: there is none");
  report = verify_static(tables(), emitted(apple7()), "library");
  behaviour_not_executable("it is refused", *report);
  EXPECT_EQ(report->verdict(), VerifyReport::Verdict::failed);
  EXPECT_EQ(outcome(*report, "runs"), "failed: it is refused");
}

}  // namespace
}  // namespace metaldoctor::testing
