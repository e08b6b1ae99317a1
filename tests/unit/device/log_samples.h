#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "scanners/device/log_reader.h"

namespace metaldoctor {

inline const Tables& shared_tables() {
  static const Tables tables = Tables::embedded().value();
  return tables;
}

inline std::string sample(const std::string& name) {
  std::ifstream in(std::string(METALDOCTOR_TESTDATA) + "/logs/" + name + ".log", std::ios::binary);
  EXPECT_TRUE(in.good()) << name;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

inline std::vector<std::string> sample_names() {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(METALDOCTOR_TESTDATA) + "/logs")) {
    if (entry.path().extension() == ".log") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

inline std::vector<Capture> read_sample(std::string_view text) {
  auto captures = read_log(shared_tables(), text, "log");
  return captures ? *std::move(captures) : std::vector<Capture>{};
}

/// "yes 1005 3003, yes? 1001 .. , no .., no? .., other=value": '?' marks what was inferred.
inline std::string dump_answers(const Capture& capture) {
  std::string text;
  for (const bool yes : {true, false}) {
    for (const Evidence evidence : {Evidence::measured, Evidence::inferred, Evidence::read}) {
      std::vector<std::int64_t> families;
      for (const CapturedAnswer& row : capture.answers) {
        if (row.answer.key.query == "supportsFamily:" && row.answer.value == Value{yes} &&
            row.evidence == evidence) {
          families.push_back(row.answer.key.arguments.front());
        }
      }
      if (families.empty()) continue;
      std::sort(families.begin(), families.end());
      text += fmt::format("{}{}{} {}", text.empty() ? "" : ", ", yes ? "yes" : "no",
                          evidence == Evidence::inferred ? "?"
                          : evidence == Evidence::read   ? "~"
                                                         : "",
                          fmt::join(families, " "));
    }
  }
  for (const CapturedAnswer& row : capture.answers) {
    if (row.answer.key.query == "supportsFamily:") continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", to_string(row.answer.key),
                        to_string(row.answer.value));
  }
  return text;
}

inline std::string dump_facts(const Capture& capture) {
  std::vector<std::string> facts;
  for (const CapturedFact& row : capture.facts) {
    facts.push_back(fmt::format("{}={}", row.fact, to_string(row.value)));
  }
  return fmt::format("{}", fmt::join(facts, " "));
}

}  // namespace metaldoctor
