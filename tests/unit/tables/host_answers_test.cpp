#include "tables/host_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace metaldoctor {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;

class HostAnswers : public testing::Test {
 protected:
  OsKnowledge unknown_os() const { return {{}, {}, tables_.newest_macos()}; }
  OsKnowledge exact(OsVersion os) const { return {os, {}, tables_.newest_macos()}; }
  OsKnowledge at_least(OsVersion os) const { return {{}, os, tables_.newest_macos()}; }

  /// "yes documented", "none".
  std::string ask(std::string_view chip, const OsKnowledge& os, std::string_view question) const {
    const Chip* row = tables_.chip(chip);
    if (row == nullptr) return "no chip";
    const auto answer = host_answer(tables_, *row, os, *parse_query_key(question));
    if (!answer) return "none";
    EXPECT_FALSE(answer->why.empty()) << question;
    EXPECT_FALSE(answer->sources.empty()) << question;
    return to_string(answer->answer.value) + ' ' + std::string(to_string(answer->evidence));
  }

  Tables tables_ = std::move(*Tables::embedded());
};

struct Case {
  std::string chip, question, expected;
};

TEST_F(HostAnswers, OsUnknown) {
  const Case cases[] = {
      {"M1 Ultra", "supportsFamily:1006", "yes documented"},
      {"M1 Ultra", "supportsFamily:1007", "yes documented"},
      {"M1 Ultra", "supportsFamily:1008", "no documented"},
      {"M1 Ultra", "supportsFamily:2002", "yes documented"},
      {"M1 Ultra", "supportsFamily:2001", "yes documented"},
      {"M1 Ultra", "supportsFamily:3003", "yes documented"},
      {"M1 Ultra", "supportsFamily:4001", "none"},
      {"M1 Ultra", "supportsFamily:5001", "yes inferred"},
      {"M1 Ultra", "supportsFamily:5002", "yes inferred"},
      {"M1 Ultra", "supportsFamily:1021", "none"},
      {"M1 Ultra", "supportsFeatureSet:10005", "yes documented"},
      {"M1 Ultra", "supportsFeatureSet:16", "none"},
      {"M1 Ultra", "maxThreadgroupMemoryLength", "32768 documented"},
      {"M1 Ultra", "argumentBuffersSupport", "1 documented"},
      {"M1 Ultra", "readWriteTextureSupport", "2 documented"},
      {"M1 Ultra", "supportsRaytracing", "yes documented"},
      {"M1 Ultra", "supportsQueryTextureLOD", "none"},
      {"M2", "supportsQueryTextureLOD", "yes documented"},
      {"M1 Ultra", "supportsBCTextureCompression", "yes documented"},
      {"A14 Bionic", "supportsBCTextureCompression", "no documented"},
      {"M1 Ultra", "isDepth24Stencil8PixelFormatSupported", "no documented"},
      {"M1 Ultra", "maxArgumentBufferSamplerCount", "1024 documented"},
      {"M4", "maxArgumentBufferSamplerCount", "500000 documented"},
      {"M4", "sparseTileSizeInBytes", "16384 measured"},
      {"M1 Ultra", "sparseTileSizeInBytes", "none"},
      {"M1", "supportsTextureSampleCount:8", "no inferred"},
      {"M5", "supportsTextureSampleCount:8", "yes inferred"},
      {"M5", "supportsTextureSampleCount:7", "none"},
      {"M1 Ultra", "supportsVertexAmplificationCount:8", "yes documented"},
      {"A13 Bionic", "supportsVertexAmplificationCount:8", "none"},
      {"A13 Bionic", "supportsVertexAmplificationCount:2", "yes documented"},
      {"M1 Ultra", "recommendedMaxWorkingSetSize", "none"},
      {"M1 Ultra", "maxBufferLength", "none"},
      {"M1 Ultra", "name", "none"},
      {"M1 Ultra", "noSuchQuestion", "none"},
      {"M1 Ultra", "supportsFamily:", "none"},
      {"M1 Ultra", "barycentricCoordsSupported", "yes documented"},
      {"A13 Bionic", "supportsFamily:5001", "no documented"},
      {"A14 Bionic", "supportsFamily:5001", "yes inferred"},
      {"A13 Bionic", "supportsShaderBarycentricCoordinates", "none"},  // its Mac column varies
      {"A14 Bionic", "supportsFamily:2002", "no documented"},
      {"A18 Pro", "supportsFamily:2002", "yes inferred"},
      {"M5", "supportsFamily:2002", "yes inferred"},
      {"M6", "supportsFamily:1011", "yes documented"},
      {"M6", "maxThreadgroupMemoryLength", "none"},
      {"M6", "supportsRaytracing", "yes documented"},
      {"M5 Ultra", "supportsFamily:1007", "none"},
      {"M5 Ultra", "hasUnifiedMemory", "none"},
      {"M5 Ultra", "maxThreadgroupMemoryLength", "none"},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(ask(one.chip, unknown_os(), one.question), one.expected)
        << one.chip << ' ' << one.question;
  }
}

TEST_F(HostAnswers, MetalFamiliesHangOnTheOs) {
  EXPECT_EQ(ask("M1 Ultra", exact({26, 5, 2}), "supportsFamily:5002"), "yes documented");
  EXPECT_EQ(ask("M1 Ultra", exact({15, 7, 5}), "supportsFamily:5002"), "no documented");
  EXPECT_EQ(ask("M1 Ultra", exact({15, 7, 5}), "supportsFamily:5001"), "yes documented");
  EXPECT_EQ(ask("M1 Ultra", exact({12, 0, 0}), "supportsFamily:5001"), "no documented");
  EXPECT_EQ(ask("M1 Ultra", at_least({26, 0, 0}), "supportsFamily:5002"), "yes documented");
  EXPECT_EQ(ask("M1 Ultra", at_least({15, 0, 0}), "supportsFamily:5001"), "yes documented");
  EXPECT_EQ(ask("M1 Ultra", at_least({15, 0, 0}), "supportsFamily:5002"), "yes inferred");
  // Metal4 includes Metal3, but an old OS that lacks Metal4 still has Metal3.
  EXPECT_EQ(ask("M5", exact({15, 0, 0}), "supportsFamily:1010"), "no inferred");
}

TEST_F(HostAnswers, AQuestionThatTheOsLacksHasNoAnswer) {
  EXPECT_EQ(ask("M3", exact({26, 5, 0}), "supportsPlacementSparse"), "yes inferred");
  EXPECT_EQ(ask("M3", exact({26, 3, 0}), "supportsPlacementSparse"), "none");
}

TEST_F(HostAnswers, EveryQuestionInTableOrder) {
  const auto answers = host_answers(tables_, *tables_.chip("M1 Ultra"), unknown_os());
  ASSERT_GT(answers.size(), 40u);
  EXPECT_EQ(to_string(answers.front().answer.key), "supportsFamily:1001");
  std::set<std::string> keys;
  for (const HostAnswer& answer : answers) {
    EXPECT_TRUE(keys.insert(to_string(answer.answer.key)).second);
    EXPECT_TRUE(is_known(answer.answer.value));
  }
  EXPECT_TRUE(keys.contains("supportsFamily:5002"));
  EXPECT_TRUE(host_answers(tables_, *tables_.chip("M5 Ultra"), unknown_os()).empty());
}

TEST_F(HostAnswers, WhatEveryMacHas) {
  const auto memory = any_host_answer(tables_, {"maxThreadgroupMemoryLength", {}});
  ASSERT_TRUE(memory.has_value());
  EXPECT_EQ(memory->answer.value, Value(std::int64_t{32768}));
  EXPECT_EQ(memory->evidence, Evidence::inferred);  // M6 was not read
  EXPECT_THAT(memory->why, testing::HasSubstr("M6"));
  EXPECT_EQ(any_host_answer(tables_, {"supportsFamily:", {1007}})->answer.value, Value(true));
  EXPECT_FALSE(any_host_answer(tables_, {"supportsFamily:", {1008}}).has_value());
  EXPECT_FALSE(any_host_answer(tables_, {"maxArgumentBufferSamplerCount", {}}).has_value());
  EXPECT_FALSE(any_host_answer(tables_, {"maxBufferLength", {}}).has_value());
}

TEST_F(HostAnswers, ChipFamilies) {
  EXPECT_THAT(chip_families(tables_, *tables_.chip("M1 Ultra"), exact({26, 6, 1})),
              ElementsAre("Apple1", "Apple2", "Apple3", "Apple4", "Apple5", "Apple6", "Apple7",
                          "Mac1", "Mac2", "Common1", "Common2", "Common3", "Metal3", "Metal4"));
  EXPECT_THAT(chip_families(tables_, *tables_.chip("M1 Ultra"), exact({15, 0, 0})),
              Not(Contains("Metal4")));
  EXPECT_TRUE(chip_families(tables_, *tables_.chip("M5 Ultra"), unknown_os()).empty());
}

}  // namespace
}  // namespace metaldoctor
