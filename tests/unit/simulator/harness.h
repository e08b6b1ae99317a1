#pragma once
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "scanners/simulator/protocol.h"

namespace metaldoctor::testing {

inline const Tables& tables() {
  static const Tables all = *Tables::embedded();
  return all;
}

/// Files are read once and stay for the whole program: requests point into them.
inline Bytes file_bytes(const std::string& path) {
  static std::map<std::string, std::string> files;
  auto [entry, fresh] = files.try_emplace(path);
  if (fresh) {
    std::ifstream in(path, std::ios::binary);
    entry->second.assign(std::istreambuf_iterator<char>(in), {});
  }
  return {reinterpret_cast<const std::uint8_t*>(entry->second.data()), entry->second.size()};
}

inline std::string fixture(std::string_view name) {
  return std::string(METALDOCTOR_FIXTURES) + "/" + std::string(name);
}

inline SimDevice paravirtual() {
  return {*read_capture(tables(), *tables().capture_text("paravirtual"), "paravirtual"), "", {}};
}

inline Answer family(std::int64_t value, bool answer) {
  return {{"supportsFamily:", {value}}, answer};
}

/// A request for one function of libpitfalls, to be changed by tests.
inline SimRequest request(const std::string& arch, std::string_view function,
                          std::vector<SimArgument> arguments = {},
                          std::string_view library = "libpitfalls.dylib") {
  SimRequest asked;
  asked.arch = arch;
  const std::string path = fixture(library);
  asked.images = {{path, file_bytes(path)}};
  asked.metal = SimMetal::start;
  asked.devices = {paravirtual()};
  SimStep start, call;
  start.kind = SimStep::Kind::initializers;
  call.symbol = "_" + std::string(function);
  call.arguments = std::move(arguments);
  asked.steps = {start, call};
  asked.runs = {{"stock", {}, {}}};
  asked.budget.instructions = 2'000'000;
  return asked;
}

inline SimResult simulated(const SimRequest& asked) {
  auto result = simulate(tables(), asked, {});
  EXPECT_TRUE(result) << (result ? "" : result.error().where + ": " + result.error().what);
  return result ? *std::move(result) : SimResult{{Trace{}}, {}, {}};
}

/// What the function returned; on a stop the stop's kind and text.
inline std::string outcome(const Trace& trace) {
  if (trace.stop) return trace.stop->kind + ": " + trace.stop->text + " at " + trace.stop->where;
  if (trace.results.empty()) return "nothing";
  return std::to_string(static_cast<std::int64_t>(trace.results.back()));
}

inline std::string log_of(const Trace& trace) {
  std::string text;
  for (const SimLogLine& line : trace.log) text += line.text + "\n";
  return text;
}

class EachArchitecture : public ::testing::TestWithParam<const char*> {};

}  // namespace metaldoctor::testing
