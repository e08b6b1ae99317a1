#include "scanners/device/log_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/device/log_samples.h"

namespace metaldoctor {
namespace {

using testing::HasSubstr;

struct Sample {
  std::string_view file, name, answers, facts;
};

// clang-format off
constexpr Sample kSamples[] = {
    {"cua-guest-stock", "Apple Paravirtual device",
     "yes 1005 3003, yes? 1001 1002 1003 1004 3001 3002, no 1006 1007 1008 1009 1010 1011, "
     "no~ 5001 5002, hasUnifiedMemory=yes",
     "ggml.tensor_disabled_by_name=yes ggml.device_id='MTL0' ggml.simdgroup_reduction=no "
     "ggml.simdgroup_mm=no ggml.has_bfloat=no ggml.has_tensor=no ggml.use_residency_sets=yes "
     "ggml.use_shared_buffers=yes recommended_working_set_mb='11453.25'"},
    {"cua-host", "Apple M1 Ultra",
     "yes 1007 3003 5002, yes? 1001 1002 1003 1004 1005 1006 3001 3002 5001, "
     "no 1008 1009 1010 1011, hasUnifiedMemory=yes",
     "ggml.tensor_disabled_by_name=yes ggml.device_id='MTL0' ggml.simdgroup_reduction=yes "
     "ggml.simdgroup_mm=yes ggml.has_bfloat=yes ggml.has_tensor=no ggml.use_residency_sets=yes "
     "ggml.use_shared_buffers=yes recommended_working_set_mb='115448.73'"},
    {"cua-guest-shim", "Apple Paravirtual device",
     "yes 1009 3003, yes? 1001 1002 1003 1004 1005 1006 1007 1008 3001 3002, no 1010 1011, "
     "no~ 5001 5002, hasUnifiedMemory=yes",
     "override.tool='LumeMetalCapabilities' override.program='llama-bench' "
     "override.appleFamilyMax=1009 override.maxThreadgroupMemory=65536 "
     "ggml.tensor_disabled_by_name=yes ggml.device_id='MTL0' ggml.simdgroup_reduction=yes "
     "ggml.simdgroup_mm=yes ggml.has_bfloat=yes ggml.has_tensor=no ggml.use_residency_sets=yes "
     "ggml.use_shared_buffers=yes recommended_working_set_mb='11453.25'"},
    // 1021 and 3006 are no families, so nothing follows from them; 5002 is one.
    {"cua-guest-broad-shim", "Apple Paravirtual device",
     "yes 1021 3006 5002, yes? 5001, hasUnifiedMemory=yes",
     "override.tool='LumeMetalCapabilities' override.program='llama-bench' "
     "override.familyMax=5001 override.featureProfile=10 override.maxThreadgroupMemory=65536 "
     "ggml.tensor_disabled_by_name=yes ggml.device_id='MTL0' ggml.simdgroup_reduction=yes "
     "ggml.simdgroup_mm=yes ggml.has_bfloat=yes ggml.has_tensor=no ggml.use_residency_sets=yes "
     "ggml.use_shared_buffers=yes recommended_working_set_mb='11453.25'"},
    {"cua-mlx-broad-shim", "", "",
     "override.tool='LumeMetalCapabilities' override.program='python' override.familyMax=5001 "
     "override.featureProfile=10 override.maxThreadgroupMemory=65536 rset_ok=no"},
    // No Common line beside Apple7: this release does not print it, so no Metal line proves nothing.
    {"ggml-2023-m1", "Apple M1",
     "yes 1007, yes? 1001 1002 1003 1004 1005 1006 3001 3002 3003, no 1008 1009 1010 1011, "
     "hasUnifiedMemory=yes",
     "recommended_working_set_mb='5461.34'"},
    {"ggml-2024-guest-common3", "Apple Paravirtual device",
     "yes 3003, yes? 3001 3002, "
     "no~ 1001 1002 1003 1004 1005 1006 1007 1008 1009 1010 1011 5001 5002, hasUnifiedMemory=yes",
     "ggml.simdgroup_reduction=no ggml.simdgroup_mm=no recommended_working_set_mb='5010.80' "
     "ggml.kernels_skipped=6"},
    {"ggml-2024-unsupported-op", "", "", "ggml.unsupported_op='MUL_MAT'"},
    {"ggml-2025-amd-residency-assert", "AMD Radeon HD GFX10 Family Unknown Prototype", "",
     "ggml.device_id='Metal' rset_ok=no"},
    {"ggml-2025-m2-no-bfloat", "Apple M2",
     "yes 1008 3003 5001, yes? 1001 1002 1003 1004 1005 1006 1007 3001 3002, "
     "no 1009 1010 1011 5002, hasUnifiedMemory=yes",
     "ggml.simdgroup_reduction=yes ggml.simdgroup_mm=yes ggml.has_residency_sets=no "
     "ggml.has_bfloat=yes ggml.use_bfloat=no recommended_working_set_mb='11453.25' "
     "ggml.kernels_skipped=3"},
    {"ggml-2025-m4-timestamps", "Apple M4",
     "yes 1009 3003 5001, yes? 1001 1002 1003 1004 1005 1006 1007 1008 3001 3002, "
     "no 1010 1011 5002, hasUnifiedMemory=yes",
     "ggml.simdgroup_reduction=yes ggml.simdgroup_mm=yes ggml.has_residency_sets=yes "
     "ggml.has_bfloat=yes ggml.use_bfloat=yes recommended_working_set_mb='11453.25'"},
    {"ggml-2026-guest-unsupported-op", "Apple Paravirtual device",
     "yes 1005, yes? 1001 1002 1003 1004 3001 3002 3003, no 1006 1007 1008 1009 1010 1011",
     "ggml.device_id='MTL0' ggml.simdgroup_reduction=no ggml.simdgroup_mm=no ggml.has_bfloat=no "
     "ggml.unsupported_op='RMS_NORM'"},
    {"ggml-2026-m1max-metal3", "Apple M1 Max",
     "yes 1007 3003 5001, yes? 1001 1002 1003 1004 1005 1006 3001 3002, "
     "no 1008 1009 1010 1011 5002, hasUnifiedMemory=yes",
     "ggml.tensor_disabled_by_name=yes ggml.device_id='MTL0' ggml.simdgroup_reduction=yes "
     "ggml.simdgroup_mm=yes ggml.has_bfloat=yes ggml.has_tensor=no ggml.use_residency_sets=yes "
     "ggml.use_shared_buffers=yes recommended_working_set_mb='22906.50'"},
    {"ggml-2026-m5-glued", "",
     "yes 1010 3003 5002, yes? 1001 1002 1003 1004 1005 1006 1007 1008 1009 3001 3002 5001, "
     "no 1011, hasUnifiedMemory=yes",
     "ggml.tensor_selftest_f16=yes ggml.tensor_selftest_bf16=yes ggml.device_id='MTL0' "
     "ggml.simdgroup_reduction=yes ggml.simdgroup_mm=yes"},
    {"ggml-2026-m5-selftest-failed", "Apple M5 Max",
     "yes 1010 5002, "
     "yes? 1001 1002 1003 1004 1005 1006 1007 1008 1009 3001 3002 3003 5001, no 1011",
     "ggml.tensor_selftest_f16=yes ggml.shader_compile_failed=yes ggml.tensor_selftest_failed=yes "
     "ggml.has_bfloat=yes ggml.has_tensor=no"},
    {"whisper-2024-intel-iris", "Intel(R) Iris(TM) Graphics 6000",
     "yes 3002, yes? 3001, no 3003, "
     "no~ 1001 1002 1003 1004 1005 1006 1007 1008 1009 1010 1011 5001 5002, hasUnifiedMemory=yes",
     "whisper.metal_backend=yes ggml.simdgroup_reduction=no ggml.simdgroup_mm=no "
     "recommended_working_set_mb='1610.61'"},
    {"whisper-2026-cpu-fallback", "Apple M4 Max",
     "yes 1009, yes? 1001 1002 1003 1004 1005 1006 1007 1008 3001 3002 3003, no 1010 1011",
     "whisper.gpu_requested=1 whisper.blas_backend=yes whisper.no_gpu_found=yes "
     "log.cut_short=yes"},
};
// clang-format on

TEST(LogReader, Samples) {
  EXPECT_EQ(sample_names().size(), std::size(kSamples)) << "a sample is not in the table";
  for (const Sample& row : kSamples) {
    SCOPED_TRACE(row.file);
    const auto captures = read_sample(sample(std::string(row.file)));
    ASSERT_EQ(captures.size(), 1u);
    EXPECT_EQ(captures[0].name, row.name);
    EXPECT_EQ(dump_answers(captures[0]), row.answers);
    EXPECT_EQ(dump_facts(captures[0]), row.facts);
  }
}

TEST(LogReader, AnswersNameTheirLine) {
  const auto captures = read_sample(sample("cua-guest-stock"));
  const CapturedAnswer* row = captures.at(0).find({"supportsFamily:", {1005}});
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->source.kind, CaptureSource::Kind::log);
  EXPECT_EQ(row->source.file, "log");
  EXPECT_EQ(row->source.line, 6u);
}

std::string with(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

/// The same log in another dress says the same.
TEST(LogReader, DressMakesNoDifference) {
  const std::string stock = sample("cua-guest-stock");
  const std::string expected = dump_answers(read_sample(stock).at(0));
  const std::pair<std::string_view, std::string> cases[] = {
      {"CRLF", with(stock, "\n", "\r\n")},
      {"CR", with(stock, "\n", "\r")},
      {"no last newline", stock.substr(0, stock.size() - 1)},
      {"colours", "\x1b[32m" + with(stock, "\n", "\x1b[0m\n\x1b[1;31m")},
      {"colour before the value", with(stock, "= ", "\x1b[33m= ")},
      {"single blanks", with(with(with(stock, "    ", " "), "  ", " "), "  ", " ")},
      {"tabs", with(stock, "   ", "\t")},
      {"ggml time and level", "0.00.046.678 I " + with(stock, "\nggml", "\n0.00.046.678 I ggml")},
      {"clock", with(stock, "ggml_metal_device_init:", "01:16:59 ggml_metal_device_init:")},
      {"hosted runner", with(stock, "ggml_metal_device_init:",
                             "2024-07-22T10:00:00.1234567Z ggml_metal_device_init:")},
      {"process tag", with(stock, "ggml_metal_device_init:",
                           "2026-08-09 12:41:47.024 llama[27:54] ggml_metal_device_init:")},
      {"quoted in a mail", "> " + with(stock, "\n", "\n> ")},
      {"NUL before lines", with(stock, "\n", std::string("\n\0\0\0", 4))},
      {"every line twice", with(stock, "\n", "\n")},
      {"blank lines and talk", "talk \xff\xfe\n" + with(stock, "\n", "\n\nmore talk\n")},
      {"a line of megabytes", std::string(3'000'000, 'x') + "\n" + stock},
  };
  for (const auto& [name, text] : cases) {
    SCOPED_TRACE(name);
    const auto captures = read_sample(text);
    ASSERT_EQ(captures.size(), 1u);
    EXPECT_EQ(captures[0].name, "Apple Paravirtual device");
    EXPECT_EQ(dump_answers(captures[0]), expected);
  }
}

struct Damage {
  std::string_view name, from, to, answers;
};

TEST(LogReader, DamageGivesUnknownNotNo) {
  const Damage cases[] = {
      {"value cut", "Apple5  (1005)", "Apple5  (10",
       "yes 3003, yes? 3001 3002, hasUnifiedMemory=yes"},
      {"name and value disagree", "Apple5  (1005)", "Apple5  (1006)",
       "yes 3003, yes? 3001 3002, hasUnifiedMemory=yes"},
      {"key cut", "GPU family: MTLGPUFamilyApple5  (1005)", "GPU fam",
       "yes 3003, yes? 3001 3002, hasUnifiedMemory=yes"},
      {"key spoilt", "GPU family: MTLGPUFamilyApple5", "GPU f?mily: MTLGPUFamilyApple5",
       "yes 3003, yes? 3001 3002, hasUnifiedMemory=yes"},
      {"prefix spoilt", "ggml_metal_device_init: GPU family: MTLGPUFamilyApple5",
       "gml_metal_device_init: GPU family: MTLGPUFamilyApple5",
       "yes 3003, yes? 3001 3002, hasUnifiedMemory=yes"},
      {"prefix cut", "ggml_metal_device_init: GPU family: MTLGPUFamilyApple5  (1005)",
       "ggml_metal_dev", "yes 3003, yes? 3001 3002, hasUnifiedMemory=yes"},
      {"glued", "(1005)\n", "(1005)", "hasUnifiedMemory=yes"},
      {"glued to another's text", "ggml_metal_device_init: GPU family: MTLGPUFamilyApple5",
       "1ggml_metal_device_init: GPU family: MTLGPUFamilyApple5",
       "yes 3003, yes? 3001 3002, hasUnifiedMemory=yes"},
      {"NUL inside", "MTLGPUFamilyApple5", std::string_view("MTLGPU\0amilyApple5", 18),
       "yes 3003, yes? 3001 3002, hasUnifiedMemory=yes"},
      {"boolean cut", "has unified memory    = true", "has unified memory    = tru",
       "yes 1005 3003, yes? 1001 1002 1003 1004 3001 3002, no 1006 1007 1008 1009 1010 1011, "
       "no~ 5001 5002"},
      {"start missing", "ggml_metal_device_init: GPU name:   MTL0 (Apple Paravirtual device)\n", "",
       "yes 1005 3003, yes? 1001 1002 1003 1004 3001 3002, no 1006 1007 1008 1009 1010 1011, "
       "hasUnifiedMemory=yes"},
      {"Common line missing", "ggml_metal_device_init: GPU family: MTLGPUFamilyCommon3 (3003)\n",
       "",
       "yes 1005, yes? 1001 1002 1003 1004 3001 3002 3003, no 1006 1007 1008 1009 1010 1011, "
       "hasUnifiedMemory=yes"},
  };
  for (const Damage& row : cases) {
    SCOPED_TRACE(row.name);
    const std::string stock = sample("cua-guest-stock");
    const std::string text = with(stock, row.from, row.to);
    ASSERT_NE(text, stock);
    const auto captures = read_sample(text);
    ASSERT_EQ(captures.size(), 1u);
    EXPECT_EQ(dump_answers(captures[0]), row.answers);
    for (const UnknownAnswer& unknown : captures[0].unknown) EXPECT_FALSE(unknown.reason.empty());
  }
}

TEST(LogReader, OneCaptureADevice) {
  const std::string stock = sample("cua-guest-stock");
  const std::string host = sample("cua-host");
  const auto two = read_sample(stock + host);
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].name, "Apple Paravirtual device");
  EXPECT_EQ(two[1].name, "Apple M1 Ultra");
  EXPECT_EQ(read_sample(stock + stock).size(), 1u) << "blocks that say the same are merged";
  EXPECT_EQ(read_sample(stock + stock.substr(0, 500)).size(), 1u) << "so is the start of one";
  EXPECT_EQ(
      read_sample(sample("ggml-2025-m2-no-bfloat") + sample("ggml-2025-m4-timestamps")).size(), 2u);
}

TEST(LogReader, ALaterContextNamesTheDeviceAgain) {
  const auto captures = read_sample(with(sample("cua-host"), " (Apple M1 Ultra)", "") +
                                    "ggml_metal_init: allocating\n"
                                    "ggml_metal_init: found device: Apple M1 Ultra\n"
                                    "ggml_metal_init: picking default device: Apple M1 Ultra\n");
  ASSERT_EQ(captures.size(), 1u);
  EXPECT_EQ(captures[0].name, "Apple M1 Ultra");
}

TEST(LogReader, OtherLinesNameTheDeviceAndTheHost) {
  const auto captures = read_sample(
      "ggml_metal_device_init: GPU name:   MTL0\n"
      "ggml_metal_device_init: GPU family: MTLGPUFamilyApple5  (1005)\n"
      "register_device: registered device Metal (Apple Paravirtual device)\n"
      "register_device: registered device BLAS (Accelerate)\n"
      "register_device: registered device CPU (Apple M1 Ultra (Virtual))\n");
  ASSERT_EQ(captures.size(), 1u);
  EXPECT_EQ(captures[0].name, "Apple Paravirtual device");
  EXPECT_EQ(captures[0].system.cpu_brand, "Apple M1 Ultra (Virtual)");
}

TEST(LogReader, OfSeveralDevicesTheOneThatWasPickedCounts) {
  const std::string listed =
      "ggml_metal_init: found device: AMD Radeon Pro 5500M\n"
      "ggml_metal_init: found device: Intel(R) UHD Graphics 630\n";
  const auto both = read_sample(listed);
  EXPECT_TRUE(both.empty() || both[0].name.empty());
  const auto picked =
      read_sample(listed + "ggml_metal_init: picking default device: AMD Radeon Pro 5500M\n");
  ASSERT_EQ(picked.size(), 1u);
  EXPECT_EQ(picked[0].name, "AMD Radeon Pro 5500M");
}

TEST(LogReader, WhatIsNoLog) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"", "log-no-device"},
      {"hello\nworld\n", "log-no-device"},
      {"ggml_metal_device_init: something else\n", "log-no-device"},
      {"{\"build_commit\": \"ee3d1b54c\"}", "log-is-json"},
      {"[\n  {\n    \"build_commit\"", "log-is-json"},
  };
  for (const auto& [text, code] : cases) {
    const auto captures = read_log(shared_tables(), text, "x.log");
    ASSERT_FALSE(captures) << text;
    EXPECT_EQ(captures.error().code, code);
    EXPECT_EQ(captures.error().fault, Fault::input);
    EXPECT_EQ(captures.error().where, "x.log");
  }
}

TEST(LogReader, ResidencyLineProvesNoOs) {
  // ggml starts 'use residency sets' as true on any macOS.
  const auto captures = read_sample(sample("cua-guest-stock"));
  EXPECT_FALSE(captures.at(0).os(shared_tables()).at_least);
}

TEST(LogReader, EveryFormOfTheTablesIsRead) {
  // An item whose form the reader does not know would be dropped without a word.
  constexpr std::string_view kForms[] = {"flag",        "mention", "bool",   "integer",
                                         "megabytes",   "family",  "device", "cpu",
                                         "used_device", "skipped", "quoted", "banner"};
  for (const LogGrammar& grammar : shared_tables().log_grammars()) {
    for (const LogGrammar::Item& item : grammar.items) {
      EXPECT_THAT(kForms, testing::Contains(item.form)) << grammar.id << ": " << item.key;
      const bool known = item.yields.starts_with("fact:") || item.yields.starts_with("device.") ||
                         item.yields.starts_with("system.") ||
                         shared_tables().query(item.yields) != nullptr;
      EXPECT_TRUE(known) << grammar.id << ": " << item.yields;
    }
  }
}

}  // namespace
}  // namespace metaldoctor
