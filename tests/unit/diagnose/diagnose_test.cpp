#include "scanners/diagnose/diagnose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scanners/diagnose/codes.h"
#include "tests/unit/device/log_samples.h"

namespace metaldoctor {
namespace {

using Kind = Comparison::Kind;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;

const Tables& tables() {
  return shared_tables();
}

Diagnosis diagnose_log(const std::string& file, std::string_view host = {},
                       std::string_view os = {}) {
  const auto captures = read_sample(sample(file));
  EXPECT_EQ(captures.size(), 1u) << file;
  DiagnoseOptions options;
  if (!host.empty()) {
    options.host = tables().chip(host);
    EXPECT_NE(options.host, nullptr) << host;
  }
  if (!os.empty()) options.os = parse_os_version(os);
  return diagnose(tables(), captures.at(0), options);
}

std::vector<std::string> keys_of(const Diagnosis& diagnosis, Kind kind) {
  std::vector<std::string> keys;
  for (const Comparison& row : diagnosis.comparisons) {
    if (row.kind == kind) keys.push_back(to_string(row.key));
  }
  return keys;
}

std::vector<std::string> codes_of(const Diagnosis& diagnosis) {
  std::vector<std::string> codes;
  for (const DiagnosisCode& row : diagnosis.codes) codes.push_back(row.code);
  return codes;
}

const Comparison& row_of(const Diagnosis& diagnosis, std::string_view key) {
  static const Comparison none;
  for (const Comparison& row : diagnosis.comparisons) {
    if (to_string(row.key) == key) return row;
  }
  ADD_FAILURE() << key << " was not compared";
  return none;
}

struct Expected {
  std::string file, host;
  std::string_view verdict;
  std::vector<std::string> codes;
};

TEST(Diagnose, VerdictAndCodesOfTheSamples) {
  const Expected cases[] = {
      {"cua-guest-stock",
       "M1 Ultra",
       "mismatch",
       {"VM_DETECTED", "VM_APPLE_FAMILY_UNDERREPORTED", "NO_METAL3_FAMILY", "SLOW_PATH_SIMDGROUP"}},
      {"cua-guest-stock",
       "",
       "mismatch",
       {"VM_DETECTED", "VM_APPLE_FAMILY_UNDERREPORTED", "NO_METAL3_FAMILY", "SLOW_PATH_SIMDGROUP"}},
      {"cua-host", "", "healthy", {"OK"}},
      {"cua-guest-shim",
       "M1 Ultra",
       "override-active",
       {"VM_DETECTED", "OVERRIDE_DETECTED", "OVERRIDE_EXCEEDS_HOST", "NO_METAL3_FAMILY"}},
      {"cua-guest-shim",
       "M3 Pro",
       "override-active",
       {"VM_DETECTED", "OVERRIDE_DETECTED", "NO_METAL3_FAMILY"}},
      {"cua-guest-broad-shim",
       "",
       "override-active",
       {"VM_DETECTED", "OVERRIDE_DETECTED", "OVERRIDE_EXCEEDS_HOST", "OVERRIDE_TOO_BROAD"}},
      {"cua-mlx-broad-shim",
       "",
       "harmful-override",
       {"OVERRIDE_DETECTED", "RESIDENCY_SET_UNSUPPORTED", "OVERRIDE_TOO_BROAD",
        "NO_CAPABILITY_LINES"}},
      {"ggml-2023-m1", "", "healthy", {"OK"}},
      {"ggml-2024-guest-common3",
       "",
       "mismatch",
       {"VM_DETECTED", "VM_NO_APPLE_FAMILY", "NO_METAL3_FAMILY", "SLOW_PATH_SIMDGROUP",
        "KERNELS_SKIPPED"}},
      {"ggml-2024-unsupported-op", "", "insufficient-data", {"UNSUPPORTED_OP", "NEED_INIT_LINES"}},
      {"ggml-2025-m2-no-bfloat",
       "",
       "build-or-os-setting",
       {"BF16_DISABLED_AT_BUILD", "RESIDENCY_NEEDS_MACOS15", "KERNELS_SKIPPED"}},
      {"ggml-2025-m4-timestamps", "", "healthy", {"OK"}},
      {"ggml-2026-guest-unsupported-op",
       "",
       "mismatch",
       {"VM_DETECTED", "VM_APPLE_FAMILY_UNDERREPORTED", "SLOW_PATH_SIMDGROUP", "UNSUPPORTED_OP",
        "APP_HAS_NO_CPU_FALLBACK"}},
      {"ggml-2026-m1max-metal3", "", "healthy", {"OK"}},
      {"ggml-2026-m5-glued", "", "insufficient-data", {"DEVICE_NAME_MISSING"}},
      {"ggml-2026-m5-selftest-failed",
       "",
       "mismatch",
       {"M5_TENSOR_PATH_LOST", "SHADER_COMPILE_FAILED"}},
      {"whisper-2024-intel-iris", "", "true-hardware-limit", {"NON_APPLE_GPU"}},
      {"whisper-2026-cpu-fallback",
       "",
       "not-a-capability-problem",
       {"SILENT_FALLBACK_TO_CPU", "LOG_TRUNCATED"}},
  };
  for (const Expected& row : cases) {
    SCOPED_TRACE(row.file + " on " + row.host);
    const Diagnosis diagnosis = diagnose_log(row.file, row.host);
    EXPECT_EQ(diagnosis.verdict, row.verdict);
    EXPECT_THAT(codes_of(diagnosis), testing::ElementsAreArray(row.codes));
  }
}

TEST(Diagnose, StockGuestOnM1Ultra) {
  struct Row {
    std::string os;
    std::vector<std::string> keys;
    Evidence metal3, metal4;
  };
  const std::vector<std::string> all = {"supportsFamily:1006", "supportsFamily:1007",
                                        "supportsFamily:5001", "supportsFamily:5002"};
  const Row cases[] = {
      // The log does not name its macOS: what hangs on it is inferred.
      {"", all, Evidence::inferred, Evidence::inferred},
      {"26.5", all, Evidence::documented, Evidence::documented},
      {"15.5", {all[0], all[1], all[2]}, Evidence::documented, {}},
      {"12.6", {all[0], all[1]}, {}, {}},
  };
  for (const Row& row : cases) {
    SCOPED_TRACE(row.os);
    const Diagnosis diagnosis = diagnose_log("cua-guest-stock", "M1 Ultra", row.os);
    EXPECT_TRUE(diagnosis.has_findings());
    EXPECT_EQ(keys_of(diagnosis, Kind::under_report), row.keys);
    EXPECT_THAT(keys_of(diagnosis, Kind::over_claim), IsEmpty());
    EXPECT_EQ(row_of(diagnosis, "supportsFamily:1006").evidence, Evidence::documented);
    for (const auto& [key, evidence] :
         {std::pair{"supportsFamily:5001", row.metal3}, {"supportsFamily:5002", row.metal4}}) {
      const Comparison& comparison = row_of(diagnosis, key);
      if (comparison.kind != Kind::under_report) continue;
      EXPECT_EQ(comparison.evidence, evidence);
      EXPECT_EQ(comparison.expected_evidence, evidence);
      EXPECT_EQ(comparison.guest_evidence, Evidence::read);  // by the missing line
    }
    const Comparison& memory = row_of(diagnosis, "maxThreadgroupMemoryLength");
    EXPECT_EQ(memory.kind, Kind::unknown);
    EXPECT_FALSE(is_known(memory.guest));
    for (const Comparison& comparison : diagnosis.comparisons) {
      const bool finding = comparison.kind == Kind::under_report;
      EXPECT_FALSE(finding && comparison.key.query != "supportsFamily:");
    }
  }
}

TEST(Diagnose, LocksHangOnTheLowestFamily) {
  const Diagnosis diagnosis = diagnose_log("cua-guest-stock", "M1 Ultra", "26.5");
  std::set<std::string> seen;
  for (const Comparison& row : diagnosis.comparisons) {
    for (const std::string& id : row.locks) {
      EXPECT_NE(tables().feature(id), nullptr);
      EXPECT_TRUE(seen.insert(id).second) << id << " is locked twice";
    }
  }
  const auto& six = row_of(diagnosis, "supportsFamily:1006").locks;
  const auto& seven = row_of(diagnosis, "supportsFamily:1007").locks;
  EXPECT_FALSE(six.empty());
  EXPECT_FALSE(seven.empty());
  for (const std::string& id : six) EXPECT_EQ(tables().feature(id)->apple, "Apple6") << id;
  for (const std::string& id : seven) EXPECT_EQ(tables().feature(id)->apple, "Apple7") << id;
}

TEST(Diagnose, HazardsOfClaimingMetal3) {
  const Diagnosis diagnosis = diagnose_log("cua-guest-stock", "M1 Ultra", "26.5");
  const Comparison& metal3 = row_of(diagnosis, "supportsFamily:5001");
  EXPECT_FALSE(metal3.hazards.empty());
  for (const Comparison& row : diagnosis.comparisons) {
    for (const auto& [id, programs] : row.hazards) {
      const Hazard* hazard = tables().hazard(id);
      ASSERT_NE(hazard, nullptr);
      EXPECT_EQ(programs.empty(), hazard->scope == Hazard::Scope::process) << id;
    }
  }
}

TEST(Diagnose, BareMetalIsHealthy) {
  for (const std::string os : {"", "26.6.1"}) {
    const Diagnosis diagnosis = diagnose_log("cua-host", {}, os);
    EXPECT_EQ(diagnosis.host_source, "device name");
    ASSERT_NE(diagnosis.host, nullptr);
    EXPECT_EQ(diagnosis.host->name, "M1 Ultra");
    EXPECT_FALSE(diagnosis.has_findings());
    EXPECT_EQ(diagnosis.is_guest, false);
  }
}

TEST(Diagnose, ARealDeviceIsBelievedOverAnAssumedOs) {
  // Metal3 on top of an M1 Max: macOS before 26, unless the OS is given.
  EXPECT_FALSE(diagnose_log("ggml-2026-m1max-metal3").has_findings());
  EXPECT_EQ(keys_of(diagnose_log("ggml-2026-m1max-metal3", {}, "26.5"), Kind::under_report),
            std::vector<std::string>{"supportsFamily:5002"});
}

TEST(Diagnose, OverrideAboveTheHost) {
  const Diagnosis above = diagnose_log("cua-guest-shim", "M1 Ultra");
  EXPECT_EQ(keys_of(above, Kind::over_claim),
            (std::vector<std::string>{"supportsFamily:1008", "supportsFamily:1009"}));
  const Diagnosis within = diagnose_log("cua-guest-shim", "M3 Pro");
  EXPECT_THAT(keys_of(within, Kind::over_claim), IsEmpty());
  EXPECT_THAT(within.notes, Contains(HasSubstr("maxThreadgroupMemory=65536")));
  const Diagnosis broad = diagnose_log("cua-guest-broad-shim", "M3 Pro", "26.5");
  EXPECT_THAT(keys_of(broad, Kind::over_claim),
              (std::vector<std::string>{"supportsFamily:1021", "supportsFamily:3006"}));
}

TEST(Diagnose, BuiltInGuestsAgreeOnThreadgroupMemory) {
  for (const std::string_view name : {"paravirtual", "cua-2026-08-stock"}) {
    const auto text = tables().capture_text(name);
    ASSERT_TRUE(text) << name;
    const auto capture = read_capture(tables(), *text, name);
    ASSERT_TRUE(capture);
    DiagnoseOptions options;
    options.host = tables().chip("M1 Ultra");
    const Diagnosis diagnosis = diagnose(tables(), *capture, options);
    const Comparison& memory = row_of(diagnosis, "maxThreadgroupMemoryLength");
    EXPECT_EQ(memory.kind, Kind::agrees);
    EXPECT_EQ(memory.guest, Value{std::int64_t{32768}});
    EXPECT_EQ(memory.expected, Value{std::int64_t{32768}});
    EXPECT_TRUE(diagnosis.has_findings());
    EXPECT_THAT(keys_of(diagnosis, Kind::over_claim), IsEmpty());
  }
}

Capture guest_with(std::vector<Answer> answers) {
  Capture capture;
  capture.name = "Apple Paravirtual device";
  for (Answer& answer : answers) {
    capture.answers.push_back({std::move(answer), Evidence::measured, {}});
  }
  return capture;
}

TEST(Diagnose, LimitsGoBothWays) {
  const std::pair<std::int64_t, Kind> cases[] = {
      {32768, Kind::agrees}, {65536, Kind::over_claim}, {16384, Kind::under_report}};
  for (const auto& [bytes, kind] : cases) {
    const Capture capture = guest_with({{{"maxThreadgroupMemoryLength", {}}, bytes}});
    DiagnoseOptions options;
    options.host = tables().chip("M3 Pro");
    EXPECT_EQ(row_of(diagnose(tables(), capture, options), "maxThreadgroupMemoryLength").kind,
              kind);
    // The same on every Mac, so the host need not be known.
    EXPECT_EQ(row_of(diagnose(tables(), capture, {}), "maxThreadgroupMemoryLength").kind, kind);
  }
}

TEST(Diagnose, SizesThatFollowTheRamAreNotFlagged) {
  const Capture capture =
      guest_with({{{"recommendedMaxWorkingSetSize", {}}, std::int64_t{5010800640}},
                  {{"maxBufferLength", {}}, std::int64_t{3758096384}}});
  DiagnoseOptions options;
  options.host = tables().chip("M1 Ultra");
  EXPECT_FALSE(diagnose(tables(), capture, options).has_findings());
  EXPECT_FALSE(diagnose(tables(), capture, {}).has_findings());
}

TEST(Diagnose, EditionConflictsAreNotFlagged) {
  DiagnoseOptions options;
  options.host = tables().chip("M1");
  const auto kind = [&](std::int64_t samplers) {
    const Capture capture = guest_with({{{"maxArgumentBufferSamplerCount", {}}, samplers}});
    return row_of(diagnose(tables(), capture, options), "maxArgumentBufferSamplerCount").kind;
  };
  EXPECT_EQ(kind(1024), Kind::agrees);
  EXPECT_EQ(kind(996), Kind::unknown);
  EXPECT_EQ(kind(16), Kind::under_report);
}

TEST(Diagnose, WithoutAHostOnlyWhatEveryMacHasIsCompared) {
  const Diagnosis diagnosis = diagnose_log("cua-guest-stock");
  EXPECT_EQ(diagnosis.host, nullptr);
  EXPECT_EQ(keys_of(diagnosis, Kind::under_report),
            (std::vector<std::string>{"supportsFamily:1006", "supportsFamily:1007"}));
  EXPECT_EQ(row_of(diagnosis, "supportsFamily:1006").evidence, Evidence::inferred);
  EXPECT_EQ(row_of(diagnosis, "supportsFamily:1008").kind, Kind::unknown);
  EXPECT_THAT(diagnosis.notes, Contains(HasSubstr("--host-chip")));
  EXPECT_TRUE(diagnosis.has_findings()) << "Apple6 is denied, which every Mac has";
}

TEST(Diagnose, TheHostComesFromTheDeviceThenTheOption) {
  Capture capture = guest_with({});
  capture.system.cpu_brand = "Apple M1 Ultra (Virtual)";
  DiagnoseOptions options;
  EXPECT_EQ(host_chip(tables(), capture, options).source, "cpu_brand");
  EXPECT_EQ(host_chip(tables(), capture, options).chip, tables().chip("M1 Ultra"));
  options.host = tables().chip("M2");
  EXPECT_EQ(host_chip(tables(), capture, options).source, "cpu_brand");
  EXPECT_THAT(host_chip(tables(), capture, options).contradiction,
              testing::AllOf(HasSubstr("M2"), HasSubstr("M1 Ultra")));
  capture.system.cpu_brand = "Apple M99 (Virtual)";
  EXPECT_THAT(host_chip(tables(), capture, options).contradiction, HasSubstr("M99"));
  capture.system.cpu_brand = "Apple processor (Virtual)";
  EXPECT_EQ(host_chip(tables(), capture, options).source, "--host-chip");
  EXPECT_EQ(host_chip(tables(), capture, options).contradiction, "");
  options.host = nullptr;
  capture.system.cpu_brand.clear();
  EXPECT_EQ(host_chip(tables(), capture, options).chip, nullptr);
  capture.name = "Apple M4 Max";
  EXPECT_EQ(host_chip(tables(), capture, options).source, "device name");
}

TEST(Diagnose, CodesOfCaptures) {
  Capture capture = guest_with({{{"hasUnifiedMemory", {}}, false}});
  EXPECT_THAT(codes_of(diagnose(tables(), capture, {})), Contains("VM_INTEL_PARAVIRTUAL_LIKELY"));
  capture = guest_with({{{"supportsFamily:", {1007}}, true}});
  EXPECT_THAT(codes_of(diagnose(tables(), capture, {})), Contains("OVERRIDE_DETECTED"));
  capture = guest_with({});
  capture.architecture = "air64_v27";
  capture.system.os = "16.2";
  capture.system.cpu_brand = "Apple M4 (Virtual)";
  EXPECT_THAT(codes_of(diagnose(tables(), capture, {})),
              IsSupersetOf({"VM_DETECTED", "HOST_CHIP_KNOWN", "OS_VERSION_COMPAT_VALUE",
                            "VM_ARCHITECTURE_NAME_GENERIC"}));
}

TEST(Diagnose, NoAppleChipIsHeldAgainstAnotherGpu) {
  DiagnoseOptions options;
  options.host = tables().chip("M1 Ultra");
  const std::vector<Answer> denied = {{{"supportsFamily:", {1007}}, false},
                                      {{"supportsFamily:", {5001}}, false}};
  struct Row {
    Capture capture;
    std::string_view code, verdict;
  };
  std::vector<Row> rows(
      5, {guest_with(denied), "VM_INTEL_PARAVIRTUAL_LIKELY", "mismatch-not-fixable"});
  rows[0].capture.answers.push_back({{{"hasUnifiedMemory", {}}, false}, Evidence::measured, {}});
  rows[1].capture.facts.push_back(
      {"recommended_working_set_mb", std::string("1073.74"), Evidence::measured, {}});
  rows[2].capture.system.cpu_brand = "Intel(R) Core(TM) i7-8700B CPU @ 3.20GHz";
  rows[2].code = "VM_INTEL_PARAVIRTUAL";
  rows[3] = {guest_with(denied), "NON_APPLE_GPU", "true-hardware-limit"};
  rows[3].capture.name = "AMD Radeon Pro 5300M";
  rows[4] = {guest_with(denied), "NON_APPLE_GPU", "true-hardware-limit"};
  rows[4].capture.name.clear();
  rows[4].capture.answers.push_back({{{"hasUnifiedMemory", {}}, false}, Evidence::measured, {}});
  for (Row& row : rows) {
    SCOPED_TRACE(row.code);
    row.capture.facts.push_back({"ggml.simdgroup_mm", false, Evidence::measured, {}});
    const Diagnosis diagnosis = diagnose(tables(), row.capture, options);
    EXPECT_TRUE(not_overridable(tables(), row.capture));
    EXPECT_EQ(diagnosis.host, nullptr);
    EXPECT_EQ(diagnosis.verdict, row.verdict);
    EXPECT_THAT(codes_of(diagnosis), Contains(row.code));
    EXPECT_THAT(codes_of(diagnosis), testing::Not(Contains("SLOW_PATH_SIMDGROUP")));
    EXPECT_FALSE(diagnosis.has_findings());
  }
  EXPECT_FALSE(not_overridable(tables(), guest_with(denied)));
  EXPECT_TRUE(not_overridable(tables(), Capture{})) << "no device";
}

TEST(Diagnose, NothingIsFineWhereFamiliesWereNotCompared) {
  DiagnoseOptions options;
  options.host = tables().chip("M5 Ultra");
  ASSERT_NE(options.host, nullptr);
  const Capture capture = guest_with({{{"supportsFamily:", {1005}}, true}});
  EXPECT_EQ(diagnose(tables(), capture, options).verdict, "insufficient-data");
  EXPECT_THAT(codes_of(diagnose(tables(), capture, options)), testing::Not(Contains("OK")));
}

TEST(Diagnose, AClaimOfMetal3InAGuestNamesItsHazard) {
  const Capture capture = guest_with({{{"supportsFamily:", {5001}}, true}});
  DiagnoseOptions options;
  options.host = tables().chip("M1");
  const Diagnosis diagnosis = diagnose(tables(), capture, options);
  EXPECT_TRUE(diagnosis.has_findings());
  EXPECT_THAT(diagnosis.notes, Contains(HasSubstr("metal3-residency-in-guest")));
}

TEST(Diagnose, HazardsOfGuestsAreNotThoseOfABareMac) {
  const Diagnosis bare = diagnose_log("ggml-2026-m1max-metal3", {}, "26.5");
  EXPECT_THAT(row_of(bare, "supportsFamily:5002").hazards, IsEmpty());
  Capture named = guest_with({});
  named.system.is_virtual = false;
  EXPECT_EQ(diagnose(tables(), named, {}).is_guest, true);
  EXPECT_THAT(diagnose(tables(), named, {}).notes, Contains(HasSubstr("taken as a guest")));
}

TEST(Diagnose, UnreadFamiliesLockNothing) {
  for (const Comparison& row : diagnose_log("cua-guest-stock", "M1 Ultra", "26.5").comparisons) {
    for (const std::string& id : row.locks) {
      EXPECT_NE(tables().feature(id)->mac, "Mac2") << id << ": the log does not name Mac2";
    }
  }
}

TEST(Diagnose, HazardsThatOnlyAnAssumptionRulesOutAreNamed) {
  EXPECT_THAT(diagnose_log("cua-guest-stock", "M1 Ultra").notes,
              Contains(HasSubstr("compute-before-macos15")));
  EXPECT_THAT(diagnose_log("cua-guest-stock", "M1 Ultra", "26.5").notes,
              testing::Not(Contains(HasSubstr("compute-before-macos15"))));
}

/// A stock guest with two answers changed, as metal-probe sees it: it tries a residency set itself.
TEST(Diagnose, AProbesOwnAttemptIsNoHarmOfTheOverride) {
  Capture capture = *read_capture(tables(), *tables().capture_text("paravirtual"), "paravirtual");
  for (CapturedAnswer& row : capture.answers) {
    const QueryKey& key = row.answer.key;
    const bool raised =
        key == QueryKey{"supportsFamily:", {1006}} || key == QueryKey{"supportsFamily:", {1007}};
    if (raised) row.answer.value = true;
  }
  std::erase_if(capture.facts, [](const CapturedFact& row) { return row.fact == "rset_ok"; });
  CapturedFact tried{"rset_ok", false, Evidence::measured, {CaptureSource::Kind::live, "x", 9, {}}};
  capture.facts.push_back(tried);
  const DiagnoseOptions options{tables().chip("M1 Ultra"), {}};
  EXPECT_EQ(diagnose(tables(), capture, options).verdict, "override-active");
  capture.facts.back().source.kind = CaptureSource::Kind::log;  // a program tried
  EXPECT_EQ(diagnose(tables(), capture, options).verdict, "harmful-override");
}

TEST(Diagnose, TheMacosOfTheInputOutweighsTheOption) {
  Capture capture = *read_capture(tables(), *tables().capture_text("paravirtual"), "paravirtual");
  capture.system.os = "15.1";
  const auto told = diagnose(tables(), capture, {tables().chip("M1"), parse_os_version("26.5")});
  EXPECT_EQ(to_string(*told.os.exact), "15.1");
  EXPECT_THAT(told.notes, Contains(HasSubstr("--os 26.5 is not used")));
  capture.system.os.clear();
  const auto taken = diagnose(tables(), capture, {tables().chip("M1"), parse_os_version("26.5")});
  EXPECT_EQ(to_string(*taken.os.exact), "26.5");
}

TEST(Diagnose, AnUnknownCpuBrandProvesNothing) {
  Capture capture = *read_capture(tables(), *tables().capture_text("paravirtual"), "paravirtual");
  for (const char* brand : {"apple m1 ultra", "M1", "AAAA"}) {
    capture.system.cpu_brand = brand;
    EXPECT_FALSE(not_overridable(tables(), capture)) << brand;
  }
  for (const char* brand : {"Intel(R) Core(TM) i7-8700B CPU @ 3.20GHz", "QEMU Virtual CPU"}) {
    capture.system.cpu_brand = brand;
    EXPECT_TRUE(not_overridable(tables(), capture)) << brand;
  }
}

TEST(Diagnose, ATruncatedInputIsNeverNothingFound) {
  Capture capture;
  capture.facts.push_back({"log.cut_short", true, Evidence::measured, {}});
  EXPECT_TRUE(diagnose(tables(), capture, {}).has_findings());
  capture.facts.clear();
  EXPECT_FALSE(diagnose(tables(), capture, {}).has_findings());
}

TEST(Diagnose, WordsAndCodesAreOfTheTables) {
  for (const std::string& code : all_codes()) {
    ASSERT_NE(tables().verdict(code), nullptr) << code;
    EXPECT_FALSE(tables().verdict(code)->is_word) << code;
  }
  for (const std::string& word : all_verdict_words()) {
    ASSERT_NE(tables().verdict(word), nullptr) << word;
    EXPECT_TRUE(tables().verdict(word)->is_word) << word;
  }
}

TEST(Diagnose, EveryCodeSaysWhatItRestsOn) {
  for (const std::string& name : sample_names()) {
    for (const DiagnosisCode& row : diagnose_log(name).codes) {
      EXPECT_FALSE(row.detail.empty()) << row.code;
      EXPECT_NE(row.evidence, Evidence::unknown) << row.code;
    }
  }
}

}  // namespace
}  // namespace metaldoctor
