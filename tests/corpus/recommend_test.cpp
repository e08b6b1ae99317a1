// recommend from binaries: the same answer as from the rules that were read in source.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "scanners/code/audit.h"
#include "scanners/device/log_reader.h"
#include "shim/binary_paths.h"

namespace metaldoctor {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

std::filesystem::path cache() {
  if (const char* set = std::getenv("METALDOCTOR_CORPUS")) return set;
  if (const char* set = std::getenv("XDG_CACHE_HOME"))
    return std::filesystem::path(set) / "metaldoctor-corpus";
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home ? home : "/") / ".cache/metaldoctor-corpus";
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class RecommendBinary : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* id : {"ggml-3.21.1", "ggml-3.1.1"})
      if (!std::filesystem::exists(cache() / id))
        GTEST_SKIP() << "SKIPPED: " << id
                     << " is not in the corpus cache; run tests/corpus/fetch.py";
    const std::string log =
        text_of(std::filesystem::path(METALDOCTOR_TESTDATA) / "logs/cua-guest-stock.log");
    auto devices = read_log(tables_, log, "cua-guest-stock.log");
    ASSERT_TRUE(devices) << devices.error().what;
    guest_ = devices->at(0);
    options_.diagnose.host = tables_.chip("M1 Ultra");
  }

  std::vector<Path> paths(const std::string& id) const {
    const std::string bytes = text_of(cache() / id);
    const Bytes view{reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
    const auto file = MachOFile::read(view, id);
    EXPECT_TRUE(file);
    const Slice& slice = file->slices().at(0);
    const Vocabulary words = vocabulary(tables_);
    const auto findings = audit(slice, words, id);
    const auto matches = match_apps(tables_, slice, "libggml-metal.so");
    EXPECT_TRUE(findings && matches);
    return paths_of(*findings, recognise(tables_, *matches, *findings));
  }
  Recommendation recommended(const std::vector<Path>& paths) const {
    auto result = recommend(tables_, guest_, paths, options_);
    EXPECT_TRUE(result);
    return *result;
  }
  static std::vector<std::string> changes(const Recommendation& from) {
    std::vector<std::string> out;
    for (const ProfileChange& change : from.profile.changes)
      out.push_back(to_string(change.answer.key) + " = " + to_string(change.answer.value));
    return out;
  }

  Tables tables_ = *Tables::embedded();
  Capture guest_;
  RecommendOptions options_;
};

TEST_F(RecommendBinary, GivesTheProfileOfTheRules) {
  const auto rule = find_app(tables_, "ggml-metal");
  ASSERT_TRUE(rule);
  const auto by_rule = recommended(paths_of(*rule->first, *rule->second));
  const auto by_binary = recommended(paths("ggml-3.21.1"));
  EXPECT_THAT(changes(by_binary),
              ElementsAre("supportsFamily:1006 = yes", "supportsFamily:1007 = yes"));
  EXPECT_EQ(changes(by_binary), changes(by_rule));
  EXPECT_THAT(by_binary.refusals, IsEmpty());
}

/// The tensor path hangs on the device's name and a test kernel: no answer opens it.
TEST_F(RecommendBinary, SaysThatTheTensorPathIsNotUnlockable) {
  const auto result = recommended(paths("ggml-3.21.1"));
  std::size_t tensor = 0;
  for (const PathState& state : result.paths) {
    if (state.path.id.find("has_tensor") == std::string::npos) continue;
    ++tensor;
    EXPECT_EQ(state.verdict, PathState::Verdict::not_unlockable);
    EXPECT_FALSE(state.wanted);
  }
  EXPECT_EQ(tensor, 1u);
}

TEST_F(RecommendBinary, SeveralBinariesGetOneProfile) {
  std::vector<Path> all = paths("ggml-3.21.1");
  const std::size_t first = all.size();
  for (Path& path : paths("ggml-3.1.1")) all.push_back(std::move(path));
  ASSERT_GT(all.size(), first);
  const auto result = recommended(all);
  EXPECT_THAT(changes(result),
              ElementsAre("supportsFamily:1006 = yes", "supportsFamily:1007 = yes"));
  EXPECT_THAT(result.conflicts, IsEmpty());
}

/// A program without rules: its own gates say what the answers open.
TEST_F(RecommendBinary, WithoutARuleTheGatesDecide) {
  const std::string bytes = text_of(cache() / "ggml-3.21.1");
  const Bytes view{reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
  const auto file = MachOFile::read(view, "unknown.dylib");
  const Vocabulary words = vocabulary(tables_);
  const auto findings = audit(file->slices().at(0), words, "unknown.dylib");
  ASSERT_TRUE(findings);
  const auto result = recommended(paths_of(*findings, {}));
  EXPECT_THAT(changes(result), Contains("supportsFamily:1007 = yes"));
  for (const ProfileChange& change : result.profile.changes)
    EXPECT_THAT(change.opens, Not(IsEmpty())) << to_string(change.answer.key);
}

}  // namespace
}  // namespace metaldoctor
