// Whatever is done to a log, what is still read from it must be what the whole log says.
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/device/log_samples.h"

namespace metaldoctor {
namespace {

/// Answers of `part` that some capture of `whole` does not share; the name counts as an answer.
std::string contradiction(const std::vector<Capture>& part, const std::vector<Capture>& whole) {
  for (const Capture& capture : part) {
    std::string first;
    bool fits = capture.answers.empty() && capture.name.empty();
    for (const Capture& other : whole) {
      std::string wrong;
      if (!capture.name.empty() && capture.name != other.name) wrong = "name " + capture.name;
      for (const CapturedAnswer& row : capture.answers) {
        if (other.answer(row.answer.key) == row.answer.value) continue;
        wrong = to_string(row.answer.key) + "=" + to_string(row.answer.value);
      }
      if (wrong.empty()) fits = true;
      if (first.empty()) first = wrong;
    }
    if (!fits) return first;
  }
  return {};
}

/// A line that is missing altogether leaves no trace, and what followed from it is lost.
bool starts_line(const std::string& text, std::size_t at) {
  return at == 0 || text[at - 1] == '\n';
}

class LogRobustness : public testing::TestWithParam<std::string> {};

TEST_P(LogRobustness, CutAtEveryByte) {
  const std::string text = sample(GetParam());
  const auto whole = read_sample(text);
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_EQ(contradiction(read_sample(text.substr(0, length)), whole), "") << "at " << length;
  }
}

TEST_P(LogRobustness, HeadCutAtEveryByte) {
  const std::string text = sample(GetParam());
  const auto whole = read_sample(text);
  for (std::size_t from = 0; from < text.size(); ++from) {
    EXPECT_EQ(contradiction(read_sample(text.substr(from)), whole), "") << "from " << from;
  }
}

TEST_P(LogRobustness, AnyTwoLinesGlued) {
  const std::string text = sample(GetParam());
  const auto whole = read_sample(text);
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1)) {
    std::string glued = text;
    glued.erase(at, 1);
    EXPECT_EQ(contradiction(read_sample(glued), whole), "") << "at " << at;
  }
}

TEST_P(LogRobustness, AnyLineCutAndGluedToTheNext) {
  const std::string text = sample(GetParam());
  const auto whole = read_sample(text);
  for (std::size_t from = 0; from < text.size(); ++from) {
    const std::size_t end = text.find('\n', from);
    if (end == std::string::npos) break;
    if (starts_line(text, from)) continue;
    EXPECT_EQ(contradiction(read_sample(text.substr(0, from) + text.substr(end + 1)), whole), "")
        << "from " << from;
  }
}

TEST_P(LogRobustness, AnyLineCutShort) {
  const std::string text = sample(GetParam());
  const auto whole = read_sample(text);
  for (std::size_t from = 0; from < text.size(); ++from) {
    const std::size_t end = text.find('\n', from);
    // A name that is cut just before its line ends cannot be told from a shorter one.
    const std::size_t start = text.rfind('\n', from) + 1;
    if (text.substr(start, end - start).find("evice: ") != std::string::npos ||
        text.substr(start, end - start).find("GPU name:") != std::string::npos) {
      continue;
    }
    // Nor can a line that is missing altogether.
    if (end == std::string::npos || from < start + 4) continue;
    EXPECT_EQ(contradiction(read_sample(text.substr(0, from) + text.substr(end)), whole), "")
        << "from " << from;
  }
}

INSTANTIATE_TEST_SUITE_P(Samples, LogRobustness, testing::ValuesIn(sample_names()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(LogRobustness, TwoDevicesGluedOrCutAnywhere) {
  const std::string text = sample("cua-guest-stock") + sample("cua-host");
  const auto whole = read_sample(text);
  ASSERT_EQ(whole.size(), 2u);
  for (std::size_t from = 0; from < text.size(); ++from) {
    const std::size_t end = text.find('\n', from);
    EXPECT_EQ(contradiction(read_sample(text.substr(0, from)), whole), "") << "cut at " << from;
    if (starts_line(text, from)) continue;
    EXPECT_EQ(contradiction(read_sample(text.substr(0, from) + text.substr(end + 1)), whole), "")
        << "glued from " << from;
  }
}

TEST(LogRobustness, NoiseNeitherCrashesNorHangs) {
  std::mt19937 random(20261201);
  const std::string text = sample("cua-guest-shim") + sample("ggml-2025-m2-no-bfloat");
  for (int round = 0; round < 3000; ++round) {
    std::string noisy = text;
    for (int i = 0; i < 12; ++i) noisy[random() % noisy.size()] = static_cast<char>(random());
    for (const Capture& capture : read_sample(noisy)) {
      EXPECT_NO_THROW(static_cast<void>(to_json(capture).dump())) << "round " << round;
    }
  }
}

TEST(LogRobustness, LargeInputsStayBounded) {
  std::string many;
  while (many.size() < 8'000'000) many += "ggml_metal_init:";
  EXPECT_TRUE(read_sample(many).empty());
  std::string blocks;
  for (int i = 0; i < 20000; ++i) {
    blocks += fmt::format(
        "ggml_metal_init: GPU name:   Apple M{}\nggml_metal_init: use bfloat = true\n", i);
  }
  EXPECT_LE(read_sample(blocks).size(), 64u);
}

}  // namespace
}  // namespace metaldoctor
