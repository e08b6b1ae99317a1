#include "tables/app_release.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace metaldoctor {
namespace {

using testing::HasSubstr;

const Tables& tables() {
  static const Tables embedded = std::move(*Tables::embedded());
  return embedded;
}

struct Case {
  std::string_view program, release, range;
};

class AppRelease : public testing::TestWithParam<Case> {};

TEST_P(AppRelease, FindsTheRange) {
  const auto [program, release, range] = GetParam();
  const auto found = app_range(*tables().app(program), program, release);
  ASSERT_TRUE(found.has_value()) << program << '@' << release << ": " << found.error().what;
  EXPECT_EQ((*found)->id, range) << program << '@' << release;
}

INSTANTIATE_TEST_SUITE_P(
    Tables, AppRelease,
    testing::Values(Case{"llama.cpp", "b1000", "G0"}, Case{"llama.cpp", "b1348", "G0"},
                    Case{"llama.cpp", "b1349", "G1"}, Case{"llama.cpp", "b5000", "G4"},
                    Case{"llama-server", "b5000", "G4"}, Case{"ggml-metal", "b5000", "G4"},
                    Case{"llama.cpp", "b10000", "G8"}, Case{"llama.cpp", "G6", "G6"},
                    Case{"whisper.cpp", "1.8.2", "G5"}, Case{"whisper.cpp", "v1.7.3", "G3"},
                    Case{"whisper.cpp", "1.8.10", "G8"}, Case{"ggml", "0.9.2", "G5"},
                    Case{"ollama", "0.12.11", "0.12.11"}, Case{"ollama", "0.9.0", "0.6.8"},
                    Case{"ollama", "0.12.0", "0.6.8"}, Case{"ollama", "0.31.1", "0.32"},
                    Case{"ollama-runner", "0.20.0", "G7"}, Case{"mlx", "0.20", "0.19.2"},
                    Case{"mlx", "0.29.9", "0.22.1"}, Case{"mlx", "0.31.2", "0.32.0"},
                    Case{"mlx", "0.2.3", "0.0.2"}, Case{"moltenvk", "1.5.0", "1.4.2"}));

struct Refusal {
  std::string_view program, release, what;
};

class NoRelease : public testing::TestWithParam<Refusal> {};

TEST_P(NoRelease, IsRefusedWithItsNeighbours) {
  const auto [program, release, what] = GetParam();
  const auto found = app_range(*tables().app(program), program, release);
  ASSERT_FALSE(found.has_value()) << (*found)->id;
  EXPECT_EQ(found.error().code, "unknown-range");
  EXPECT_EQ(found.error().fault, Fault::usage);
  EXPECT_THAT(found.error().what, HasSubstr(what));
}

INSTANTIATE_TEST_SUITE_P(
    Tables, NoRelease,
    testing::Values(Refusal{"llama.cpp", "b8000", "G4 is b4562 to b6400, G8 is from b9409 on"},
                    Refusal{"mlx", "0.10.0", "0.0.2 is 0.0.2 to 0.2, 0.19.1 is 0.19.1"},
                    Refusal{"ollama", "0.1.27", "next to it: 0.5.7 is 0.5.7"},
                    Refusal{"ollama", "0.12.5", "0.6.8 is 0.6.8 to 0.12.0, 0.12.11 is 0.12.11"},
                    Refusal{"moltenvk", "1.3.0", "1.4.2 is from 1.4.2 on"},
                    Refusal{"ggml-metal", "0.9.2", "several programs"},
                    Refusal{"mlx-lm", "0.28.0",
                            "called '0.28.0'"},  // MLX-LM does not number as MLX does
                    Refusal{"llama.cpp", "1.8.2", "called"},
                    Refusal{"whisper.cpp", "b5000", "called"}, Refusal{"llama.cpp", "b", "called"},
                    Refusal{"llama.cpp", "", "called"}, Refusal{"llama.cpp", "b5000x", "called"},
                    Refusal{"llama.cpp", "b50.1", "called"}, Refusal{"mlx", "0.20.", "called"},
                    Refusal{"mlx", "1.2.3.4.5", "called"},
                    Refusal{"mlx", "99999999999.0", "called"}));

TEST(IncludedRanges, GiveTheirRulesAndQuestions) {
  const App* ollama = tables().app("ollama");
  for (const auto& [release, source] : {std::pair("0.5.7", "ggml-metal@G3"),
                                        {"0.12.11", "ggml-metal@G5"},
                                        {"0.20.0", "ggml-metal@G7"},
                                        {"0.30.0", "ggml-metal@G8"}}) {
    const AppRange* range = *app_range(*ollama, "ollama", release);
    const auto reduction =
        std::find_if(range->rules.begin(), range->rules.end(),
                     [](const Rule& rule) { return rule.id == "has_simdgroup_reduction"; });
    ASSERT_NE(reduction, range->rules.end()) << release;
    EXPECT_EQ(reduction->included_from, source);
    EXPECT_THAT(range->asks, testing::Contains(QueryKey{"supportsFamily:", {1007}}));
  }
  // Read alone or with all others, it is the same.
  const Tables all = std::move(*Tables::embedded());
  (void)all.apps();
  EXPECT_EQ(all.app("ollama")->ranges.back().rules.size(), ollama->ranges.back().rules.size());
  EXPECT_EQ(ollama->ranges.back().rules.size(),
            1 + tables().app("ggml-metal")->ranges.back().rules.size());
}

}  // namespace
}  // namespace metaldoctor
