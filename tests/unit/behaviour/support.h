#pragma once
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "scanners/macho/image.h"
#include "scanners/simulator/protocol.h"
#include "shim/behaviour.h"
#include "shim/emit.h"

namespace metaldoctor::testing {

inline const Tables& tables() {
  static const Tables all = *Tables::embedded();
  return all;
}

inline std::vector<std::uint8_t> bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::vector<std::uint8_t>((std::istreambuf_iterator<char>(in)), {});
}

inline Answer family(std::int64_t value, bool answer = true) {
  return {{"supportsFamily:", {value}}, answer};
}

inline Profile profile(std::vector<Answer> changes, std::string chip = "M1 Ultra") {
  Profile out;
  out.bound.chip = std::move(chip);
  for (Answer& change : changes) out.changes.push_back({std::move(change), "", {}, {}});
  return out;
}
inline Profile apple7() {
  return profile({family(1006), family(1007)});
}

inline std::vector<std::uint8_t> emitted(const Profile& wanted, const EmitOptions& options = {}) {
  const auto result = emit(tables(), wanted, options);
  EXPECT_TRUE(result) << (result ? "" : result.error().what);
  return result ? result->bytes : std::vector<std::uint8_t>();
}

/// The simulator in this program, by way of the documents that the tool exchanges with its own.
inline Result<Json> simulator(const Json& request) {
  const auto document = read_sim_request(tables(), request.dump(), "request");
  if (!document) return tl::unexpected(document.error());
  const auto result = simulate(tables(), document->request, {});
  if (!result) return tl::unexpected(result.error());
  return parse_json(to_json(*result).dump(), "result");
}

inline VerifyReport verified(Bytes library, const BehaviourOptions& options = {}) {
  auto report = verify_static(tables(), library, "library", options.expected);
  EXPECT_TRUE(report) << (report ? "" : report.error().what);
  if (!report) return {};
  const auto done = verify_behaviour(tables(), library, options, simulator, *report);
  EXPECT_TRUE(done) << (done ? "" : done.error().where + ": " + done.error().what);
  return *std::move(report);
}

/// "passed", or the state with the detail.
inline std::string outcome(const VerifyReport& report, std::string_view id) {
  const VerifyCheck* check = report.check(id);
  if (!check) return "no such check";
  if (check->state == VerifyCheck::State::passed) return "passed";
  return std::string(to_string(check->state)) + ": " + check->detail;
}

}  // namespace metaldoctor::testing
