#include "shim/dylib/config.h"

#include <gmock/gmock.h>

#include <cstring>
#include <map>
#include <random>
#include <string>

#include "tests/unit/shim_dylib/mangled.h"

namespace metaldoctor::shim {
namespace {

using testing::ElementsAre;

std::map<std::string, std::string>& environment() {
  static std::map<std::string, std::string> variables;
  return variables;
}
char* lookup(const char* name) {
  const auto found = environment().find(name);
  return found == environment().end() ? nullptr : found->second.data();
}

std::string section(const std::string& text) {
  std::string bytes = text;
  bytes.resize(kSectionSize, '\0');
  return bytes;
}
const std::string kTemplate = section("mdtemplate1;0.1.0;");

Configuration configured(const std::string& bytes, std::map<std::string, std::string> variables) {
  environment() = std::move(variables);
  Configuration out;
  configure(bytes.data(), bytes.size(), lookup, out);
  return out;
}

/// "1:1006=1 3>=65536 all process host", or "stock", "malformed".
std::string dump(const Configuration& configuration) {
  if (configuration.malformed) return "malformed";
  if (configuration.origin == Origin::nothing) return "stock";
  std::string text;
  const Overrides& overrides = configuration.overrides;
  for (size_t i = 0; i < overrides.count; ++i) {
    const Change& change = overrides.changes[i];
    text += std::to_string(change.wire);
    if (find_query(change.wire)->has_argument) text += ":" + std::to_string(change.argument);
    text += (change.at_least ? ">=" : "=") + std::to_string(change.value) + " ";
  }
  return text + kCallersNames[static_cast<int>(overrides.callers)] + " " +
         kScopeNames[static_cast<int>(overrides.scope)] + " " +
         kBoundNames[static_cast<int>(overrides.bound)];
}

TEST(Configure, TheSectionWins) {
  const std::map<std::string, std::string> variables = {
      {"METALDOCTOR_PROFILE", "mdp1;all;process;host;1:1009=1;."},
      {"LUME_METAL_APPLE_FAMILY_MAX", "1009"}};
  EXPECT_EQ(dump(configured(section("mdp1;app;tree;host;1:1006=1;."), variables)),
            "1:1006=1 app tree host");
  EXPECT_EQ(dump(configured(section("mdp1;all;"), variables)), "malformed");
  EXPECT_EQ(dump(configured(section(""), variables)), "malformed");
  EXPECT_EQ(dump(configured(section("mdtemplate2;9.0;"), variables)), "malformed");
}

TEST(Configure, ATemplateReadsTheEnvironmentInOrder) {
  EXPECT_EQ(dump(configured(kTemplate, {})), "stock");
  EXPECT_EQ(dump(configured(kTemplate, {{"METALDOCTOR_PROFILE", "mdp1;all;process;none;."},
                                        {"LUME_METAL_APPLE_FAMILY_MAX", "1009"}})),
            "all process none");
  // A malformed source is not passed over for the next one.
  EXPECT_EQ(dump(configured(
                kTemplate, {{"METALDOCTOR_PROFILE", ""}, {"LUME_METAL_APPLE_FAMILY_MAX", "1009"}})),
            "malformed");
}

TEST(Configure, VariablesOfOtherShims) {
  EXPECT_EQ(dump(configured(kTemplate, {{"LUME_METAL_APPLE_FAMILY_MAX", "1002"}})),
            "1:1001=1 1:1002=1 all tree drop-in, unbounded");
  EXPECT_EQ(dump(configured(kTemplate, {{"VEERTU_ANKA_GPU_APPLE_FAMILY_MAX", "1001"},
                                        {"VEERTU_ANKA_GPU_THREADGROUP_MEMORY_MIN", "65536"},
                                        {"VEERTU_ANKA_GPU_WORKING_SET_MIN", "99"}})),
            "1:1001=1 3>=65536 5>=99 all tree drop-in, unbounded");
  // Above the last family that exists the ceiling raises no more.
  EXPECT_EQ(configured(kTemplate, {{"LUME_METAL_APPLE_FAMILY_MAX", "1999"}}).overrides.count, 11);
  for (const char* bad :
       {"", "1000", "2000", "1006 ", "+1006", "01006", "0x3ee", "99999999999999999999"}) {
    EXPECT_EQ(dump(configured(kTemplate, {{"LUME_METAL_APPLE_FAMILY_MAX", bad}})), "malformed")
        << bad;
  }
  EXPECT_EQ(dump(configured(kTemplate, {{"LUME_METAL_APPLE_FAMILY_MAX", "1006"},
                                        {"LUME_METAL_MAX_THREADGROUP_MEMORY", "many"}})),
            "malformed");
}

struct Text {
  const char* text;
  bool valid;
};
constexpr Text kTexts[] = {
    {"mdp1;all;process;host;.", true},
    {"mdp1;all;process;above-host;1:1006=1;.", true},
    {"mdp1;all;process;host;1:-1009=0;.", true},
    {"mdp1;all;process;host;1:9007199254740992=1;.", true},
    {"mdp1;all;process;host;5=18446744073709551615;.", true},
    {"mdp1;all;process;host;1:1006=1;1:1007=1;3=32768;36=8;.", true},
    {"", false},
    {"mdp1;all;process;host;", false},                // cut before the end mark
    {"mdp1;all;process;host;1:1006=1;1:100", false},  // cut inside a number
    {"mdp1;all;process;host;..", false},
    {"mdp1;all;process;host;.\n", false},
    {"mdp2;all;process;host;.", false},  // a later version
    {"mdp1;none;process;host;.", false},
    {"mdp1;all;thread;host;.", false},
    {"mdp1;all;process;drop-in, unbounded;.", false},      // not for a profile to claim
    {"mdp1;all;process;host;1:1007=1;1:1006=1;.", false},  // not sorted
    {"mdp1;all;process;host;1:1006=1;1:1006=1;.", false},  // twice
    {"mdp1;all;process;host;1=1;.", false},                // argument missing
    {"mdp1;all;process;host;3:1=1;.", false},              // argument where none belongs
    {"mdp1;all;process;host;1:1006=2;.", false},           // BOOL
    {"mdp1;all;process;host;1:01006=1;.", false},
    {"mdp1;all;process;host;1:-0=1;.", false},
    {"mdp1;all;process;host;1:9007199254740993=1;.", false},
    {"mdp1;all;process;host;5=18446744073709551616;.", false},
    {"mdp1;all;process;host;0=1;.", false},
    {"mdp1;all;process;host;65535=1;.", false},
    {"mdp1;all;process;host;65537:1006=1;.", false},  // wire 1 after truncation to 16 bits
    {"mdp1;all;process;host; 1:1006=1;.", false},
};

TEST(ParseOverrides, OneSpelling) {
  for (const Text& text : kTexts) {
    Overrides out;
    EXPECT_EQ(parse_overrides(text.text, std::strlen(text.text), out), text.valid) << text.text;
    if (!text.valid) EXPECT_EQ(out.count, 0) << text.text;
  }
}

TEST(ParseOverrides, EveryCutTextIsMalformed) {
  const std::string text = "mdp1;all;process;host;1:1006=1;1:1007=1;3=32768;.";
  for (size_t size = 0; size < text.size(); ++size) {
    Overrides out;
    EXPECT_FALSE(parse_overrides(text.data(), size, out)) << text.substr(0, size);
  }
}

TEST(ParseOverrides, NoMoreChangesThanThereIsRoomFor) {
  std::string text = "mdp1;all;process;host;";
  for (size_t i = 0; i < kMaxChanges; ++i) text += "1:" + std::to_string(1000 + i) + "=1;";
  Overrides out;
  const std::string full = text + ".";
  EXPECT_TRUE(parse_overrides(full.data(), full.size(), out));
  EXPECT_EQ(out.count, kMaxChanges);
  const std::string over = text + "3=1;.";
  EXPECT_FALSE(parse_overrides(over.data(), over.size(), out));
}

/// Written from the overrides by the rules of profile_text.h; what differs from it is not
/// canonical.
std::string printed(const Overrides& overrides) {
  std::string text = std::string(kProfileMark) + kCallersNames[int(overrides.callers)] + ";" +
                     kScopeNames[int(overrides.scope)] + ";" + kBoundNames[int(overrides.bound)] +
                     ";";
  for (size_t i = 0; i < overrides.count; ++i) {
    const Change& change = overrides.changes[i];
    text += std::to_string(change.wire);
    if (find_query(change.wire)->has_argument) text += ":" + std::to_string(change.argument);
    text += "=" + std::to_string(change.value) + ";";
  }
  return text + ".";
}

// 100,000 texts from a seed: whatever is taken is exactly what it says, everything else is stock.
TEST(ParseOverrides, MangledTextsAreStockOrMeanWhatTheySay) {
  std::mt19937 random(20261201);
  size_t taken = 0;
  for (int i = 0; i < 100'000; ++i) {
    const std::string text = mangled(random);
    for (const bool in_section : {true, false}) {
      const Configuration configuration =
          in_section ? configured(section(text), {})
                     : configured(kTemplate, {{"METALDOCTOR_PROFILE", text}});
      if (configuration.malformed) {
        ASSERT_EQ(configuration.overrides.count, 0);
      } else {
        ASSERT_EQ(printed(configuration.overrides), text);
        ++taken;
      }
    }
  }
  EXPECT_LT(taken, 20'000u);
}

TEST(Decide, SetsOrRaises) {
  EXPECT_EQ(decide({1, false, 1006, 1}, 0), 1u);
  EXPECT_EQ(decide({1, false, 1006, 0}, 1), 0u);
  EXPECT_EQ(decide({3, true, 0, 65536}, 32768), 65536u);
  EXPECT_EQ(decide({3, true, 0, 16384}, 32768), 32768u);
}

TEST(RemoveLibrary, TakesOutItsOwnEntry) {
  struct Case {
    const char *list, *left;
  };
  for (const Case& c : {Case{"/a/us.dylib", ""},
                        {"/a/us.dylib:/b/x.dylib", "/b/x.dylib"},
                        {"/b/x.dylib:/a/us.dylib", "/b/x.dylib"},
                        {"/b/x.dylib:us.dylib:/c/y.dylib", "/b/x.dylib:/c/y.dylib"},
                        {"/us.dylib:/a/us.dylib", ""},
                        {"/a/us.dylib.bak:/a/bus.dylib", "/a/us.dylib.bak:/a/bus.dylib"},
                        {"", ""}}) {
    std::string list = c.list;
    remove_library(list.data(), "us.dylib");
    EXPECT_STREQ(list.c_str(), c.left) << c.list;
  }
}

}  // namespace
}  // namespace metaldoctor::shim
