#include "scanners/device/capture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/device/log_samples.h"

namespace metaldoctor {
namespace {

using testing::HasSubstr;

std::string document(std::string_view parts) {
  return fmt::format(R"({{"schema": "metaldoctor.capture/1", "device": {{"name": "x"}},
                         "system": {{}}, {}}})",
                     parts);
}

std::string answers(std::string_view rows) {
  return document(fmt::format(R"("answers": [{}])", rows));
}

std::string answer(std::string_view query, std::string_view arguments, std::string_view value) {
  return fmt::format(R"({{"query": "{}", "arguments": [{}], "answer": {}, "evidence": "measured",
                         "source": {{"kind": "live"}}}})",
                     query, arguments, value);
}

Result<Capture> read(std::string_view text) {
  return read_capture(shared_tables(), text, "c.json");
}

TEST(Capture, BuiltInOnesReadAndSurviveARoundTrip) {
  for (const std::string_view name : shared_tables().capture_names()) {
    SCOPED_TRACE(name);
    const auto capture = read(*shared_tables().capture_text(name));
    ASSERT_TRUE(capture) << capture.error().where << ": " << capture.error().what;
    EXPECT_FALSE(capture->answers.empty());
    EXPECT_EQ(capture->is_guest(), true);
    const auto again = read(to_json(*capture).dump());
    ASSERT_TRUE(again) << again.error().where << ": " << again.error().what;
    EXPECT_EQ(to_json(*again), to_json(*capture));
  }
}

TEST(Capture, LogCapturesAreValidDocuments) {
  for (const std::string& name : sample_names()) {
    for (const Capture& capture : read_sample(sample(name))) {
      const auto again = read(to_json(capture).dump());
      ASSERT_TRUE(again) << name << ": " << again.error().where << ": " << again.error().what;
      EXPECT_EQ(to_json(*again), to_json(capture));
    }
  }
}

TEST(Capture, UnsignedAnswersAreNotNegative) {
  for (const std::string_view query :
       {"maxThreadgroupMemoryLength", "argumentBuffersSupport", "peerIndex"}) {
    for (const std::string_view value : {"-1", "\"-1\""}) {
      const auto capture = read(answers(answer(query, "", value)));
      ASSERT_FALSE(capture) << query;
      EXPECT_EQ(capture.error().fault, Fault::input);
      EXPECT_EQ(capture.error().code, "capture-answer-range");
    }
  }
}

TEST(Capture, TheOsIsAVersionOrLeftOut) {
  const auto os = [](std::string_view text) {
    return read(fmt::format(R"({{"schema": "metaldoctor.capture/1", "device": {{"name": "x"}},
                                "system": {{"os": "{}"}}, "answers": []}})",
                            text));
  };
  for (const std::string_view text : {"26.x", "Sonoma", "macOS"}) EXPECT_FALSE(os(text)) << text;
  for (const auto& [text, version] : {std::pair{"macOS 14.5", OsVersion{14, 5, 0}},
                                      {"Version 26.5.2 (Build 25F84)", OsVersion{26, 5, 2}},
                                      {"16.0", OsVersion{26, 0, 0}}}) {
    const auto capture = os(text);
    ASSERT_TRUE(capture) << text;
    EXPECT_EQ(capture->os(shared_tables()).exact, version) << text;
  }
}

TEST(Capture, WhatAFamilyImpliesIsYesByInference) {
  const auto capture = read(answers(answer("supportsFamily:", "1003", "true") + ", " +
                                    answer("supportsFamily:", "1001", "false")));
  ASSERT_TRUE(capture);
  const CapturedAnswer* implied = capture->find({"supportsFamily:", {1002}});
  ASSERT_NE(implied, nullptr);
  EXPECT_EQ(implied->answer.value, Value{true});
  EXPECT_EQ(implied->evidence, Evidence::inferred);
  EXPECT_EQ(capture->answer({"supportsFamily:", {1001}}), Value{false}) << "a no that was read";
  EXPECT_FALSE(is_known(capture->answer({"supportsFamily:", {1004}})));
}

TEST(Capture, LargeIntegersAreDecimalStrings) {
  Capture capture;
  capture.answers.push_back(
      {{{"maxBufferLength", {}}, std::int64_t{9007199254740993}}, Evidence::measured, {}});
  const Json json = to_json(capture);
  EXPECT_EQ(json["answers"][0]["answer"], "9007199254740993");
  const auto again = read(json.dump());
  ASSERT_TRUE(again) << again.error().what;
  EXPECT_EQ(again->answer({"maxBufferLength", {}}), Value{std::int64_t{9007199254740993}});
}

struct Refusal {
  std::string_view what_is_wrong;
  std::string text;
  std::string_view where;
};

TEST(Capture, RefusalsNameTheJsonPointer) {
  const std::string yes = answer("supportsFamily:", "1007", "true");
  const Refusal cases[] = {
      {"integer for a boolean query", answers(answer("supportsFamily:", "1007", "1")),
       "/answers/0/answer"},
      {"boolean for an integer query",
       answers(yes + "," + answer("maxThreadgroupMemoryLength", "", "true")), "/answers/1/answer"},
      {"text for a boolean query", answers(answer("hasUnifiedMemory", "", R"("yes")")),
       "/answers/0/answer"},
      {"a number that is none", answers(answer("maxBufferLength", "", R"("12x")")),
       "/answers/0/answer"},
      {"no such query", answers(answer("supportsWarpDrive", "", "true")), "/answers/0/query"},
      {"missing argument", answers(answer("supportsFamily:", "", "true")), "/answers/0/query"},
      {"answered twice", answers(yes + "," + answer("supportsFamily:", "1007", "false")),
       "/answers/1"},
      {"answered and unknown",
       document(
           R"("answers": [)" + yes +
           R"(], "unknown": [{"query": "supportsFamily:", "arguments": [1007], "reason": ""}])"),
       "/unknown/0"},
      {"fact twice", document(R"("answers": [], "facts": [
           {"fact": "rset_ok", "value": true, "evidence": "measured"},
           {"fact": "rset_ok", "value": false, "evidence": "measured"}])"),
       "/facts/1"},
      {"another kind of document", R"({"schema": "metaldoctor.profile/1"})", "c.json"},
      {"no JSON", "ggml_metal_init: allocating", "c.json"},
      {"empty", "", "c.json"},
      {"cut", R"({"schema": "metaldoctor.capture/1", "device": {"na)", "c.json"},
      {"too deep", std::string(100000, '['), "c.json"},
  };
  for (const Refusal& row : cases) {
    SCOPED_TRACE(row.what_is_wrong);
    const auto capture = read(row.text);
    ASSERT_FALSE(capture);
    EXPECT_EQ(capture.error().fault, Fault::input);
    EXPECT_THAT(capture.error().where, HasSubstr(row.where));
    EXPECT_FALSE(capture.error().what.empty());
  }
}

TEST(Capture, AliasesBecomeCanonical) {
  for (const Query& query : shared_tables().queries()) {
    if (query.aliases.empty() || query.type != AnswerType::boolean || !query.argument.empty()) {
      continue;
    }
    const auto capture = read(answers(answer(query.aliases.front(), "", "true")));
    ASSERT_TRUE(capture) << query.aliases.front();
    EXPECT_EQ(capture->answer({query.selector, {}}), Value{true});
    EXPECT_FALSE(read(answers(answer(query.aliases.front(), "", "true") + "," +
                              answer(query.selector, "", "true"))))
        << "the alias and the name are one answer";
    return;
  }
  GTEST_FAIL() << "no boolean query with an alias is left to test with";
}

TEST(Capture, TooManyRowsAreRefused) {
  std::string rows;
  for (int i = 0; i < 10'001; ++i) {
    rows += (i == 0 ? "" : ",") + answer("supportsTextureSampleCount:", std::to_string(i), "true");
  }
  const auto capture = read(answers(rows));
  ASSERT_FALSE(capture);
  EXPECT_EQ(capture.error().code, "capture-too-large");
  EXPECT_THAT(capture.error().where, HasSubstr("/answers"));
}

struct Identity {
  std::string name, cpu_brand, hw_model;
  std::optional<bool> is_virtual, expected;
};

TEST(Capture, TellsGuestsFromRealDevices) {
  const Identity cases[] = {
      {"Apple Paravirtual device", "", "", {}, true},
      {"Apple Paravirtualized Graphics Device", "", "", {}, true},
      {"", "Apple M2 Pro (Virtual)", "", {}, true},
      {"", "", "VirtualMac2,1", {}, true},
      {"Apple M1 Ultra", "", "", {}, false},
      {"Apple M1 Ultra", "", "", true, true},
      {"Apple Para", "", "", {}, {}},
      {"Intel(R) UHD Graphics 630", "", "", {}, {}},
      {"", "", "", {}, {}},
  };
  for (const Identity& row : cases) {
    Capture capture;
    capture.name = row.name;
    capture.system = {{}, {}, row.hw_model, row.cpu_brand, row.is_virtual};
    EXPECT_EQ(capture.is_guest(), row.expected) << row.name << row.cpu_brand << row.hw_model;
  }
}

TEST(Capture, KnowsItsOs) {
  Capture capture;
  EXPECT_EQ(capture.os(shared_tables()).assumed, shared_tables().newest_macos());
  EXPECT_FALSE(capture.os(shared_tables()).exact);
  capture.system.os = "26.5.2";
  EXPECT_EQ(capture.os(shared_tables()).exact, (OsVersion{26, 5, 2}));
  // What a program built with an older SDK is told on macOS 26.
  capture.system.os = "16.1";
  EXPECT_EQ(capture.os(shared_tables()).exact, (OsVersion{26, 1, 0}));
  capture.system.os.clear();
  capture.facts.push_back({"os_at_least", std::string("15.0"), Evidence::read, {}});
  EXPECT_EQ(capture.os(shared_tables()).at_least, (OsVersion{15, 0, 0}));
}

TEST(Capture, AFamilyOfARealDeviceBoundsItsOs) {
  Capture capture;
  capture.name = "Apple M1";
  capture.answers.push_back({{{"supportsFamily:", {5002}}, true}, Evidence::measured, {}});
  EXPECT_EQ(capture.os(shared_tables()).at_least, (OsVersion{26, 0, 0}));
  // In a guest the answer may be an override's.
  capture.name = "Apple Paravirtual device";
  EXPECT_FALSE(capture.os(shared_tables()).at_least);
}

}  // namespace
}  // namespace metaldoctor
