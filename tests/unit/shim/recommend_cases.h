#pragma once
// Guests, hosts and paths that the tests of recommend share.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shim/recommend.h"

namespace metaldoctor {

using PathVerdict = PathState::Verdict;

inline QueryKey family(std::int64_t value) {
  return {"supportsFamily:", {value}};
}

inline const Tables& tables() {
  static const Tables loaded = [] {
    auto result = Tables::embedded();
    if (!result) throw std::runtime_error(result.error().what);
    return std::move(*result);
  }();
  return loaded;
}

inline void answer(Capture& capture, QueryKey key, Value value) {
  capture.answers.push_back({{std::move(key), std::move(value)}, Evidence::measured, {}});
}

/// A stock guest on an Apple silicon Mac; what its threadgroup memory is nobody asked.
inline Capture stock_guest(std::string os = "26.5.2") {
  Capture capture;
  capture.name = "Apple Paravirtual device";
  capture.architecture = "air64_v27";
  capture.system.os = std::move(os);
  capture.system.is_virtual = true;
  for (std::int64_t value : {1001, 1002, 1003, 1004, 1005, 3001, 3002, 3003}) {
    answer(capture, family(value), true);
  }
  for (std::int64_t value : {1006, 1007, 1008, 1009, 1010, 1011, 5001, 5002}) {
    answer(capture, family(value), false);
  }
  answer(capture, {"hasUnifiedMemory", {}}, true);
  return capture;
}

inline std::vector<Path> paths_of_specs(const std::vector<std::string>& specs) {
  std::vector<Path> paths;
  for (const std::string& spec : specs) {
    const auto found = find_app(tables(), spec);
    if (!found) {
      ADD_FAILURE() << spec << ": " << found.error().what;
      continue;
    }
    for (Path& path : paths_of(*found->first, *found->second)) paths.push_back(std::move(path));
  }
  return paths;
}

inline RecommendOptions on_host(std::string_view chip) {
  RecommendOptions options;
  options.diagnose.host = tables().chip(chip);
  EXPECT_NE(options.diagnose.host, nullptr) << chip;
  return options;
}

inline Recommendation run(const Capture& guest, const std::vector<Path>& paths,
                          const RecommendOptions& options) {
  auto result = recommend(tables(), guest, paths, options);
  EXPECT_TRUE(result) << result.error().code << ": " << result.error().what;
  return result ? *std::move(result) : Recommendation();
}

inline std::string changes(const Recommendation& result) {
  std::string text;
  for (const ProfileChange& change : result.profile.changes) {
    if (!text.empty()) text += " ";
    text += to_string(change.answer.key) + "=" + to_string(change.answer.value);
  }
  return text;
}

inline std::string why(const Recommendation& result, const QueryKey& key) {
  for (const LeftAlone& left : result.profile.left_alone) {
    if (left.key == key) return left.why;
  }
  return "(not listed)";
}

inline const PathState& state(const Recommendation& result, std::string_view rule) {
  for (const PathState& state : result.paths) {
    if (state.path.id.ends_with(rule)) return state;
  }
  ADD_FAILURE() << "no path " << rule;
  static const PathState none;
  return none;
}

inline std::vector<std::string> codes(const Recommendation& result) {
  std::vector<std::string> codes;
  for (const Diagnostic& refusal : result.refusals) {
    EXPECT_EQ(refusal.fault, Fault::refused);
    codes.push_back(refusal.code);
  }
  return codes;
}

inline Path made_up(std::string id, std::string_view predicate) {
  Path path;
  path.program = id.substr(0, id.find('/'));
  path.id = std::move(id);
  auto parsed = Predicate::parse(predicate);
  EXPECT_TRUE(parsed) << predicate;
  if (parsed) path.predicate = *parsed;
  return path;
}

}  // namespace metaldoctor
