#include "shim/behaviour_request.h"

#include <fmt/format.h>

namespace metaldoctor {
namespace {

std::string hex_text(const std::vector<std::uint8_t>& bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const std::uint8_t byte : bytes) {
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

}  // namespace

std::string_view first_driver(const SimulatedProcess& process) {
  return process.bare_metal ? "AGXG13XFamilyDevice" : "AppleParavirtDevice";
}

/// A sibling below the same accelerator class: what is changed there shows on both.
std::string_view second_driver(const SimulatedProcess& process) {
  if (process.bare_metal) return "AGXG17PDevice";
  return process.arch == "arm64" ? "AGXG13XFamilyDevice" : "BronzeMtlDevice";
}

Json initializers_step() {
  return {{"do", "initializers"}};
}

std::vector<Json> ask_steps(const std::vector<QueryKey>& more) {
  std::vector<Json> steps = {{{"do", "ask"}, {"queries", "known"}}};
  if (more.empty()) return steps;
  Json queries = Json::array();
  for (const QueryKey& key : more) {
    queries.push_back({{"query", key.query}, {"arguments", key.arguments}});
  }
  steps.push_back({{"do", "ask"}, {"queries", std::move(queries)}});
  return steps;
}

Json call_step(std::uint64_t address) {
  return {{"do", "call"}, {"address", address}, {"arguments", {0, 0, 0, 0}}};
}

Json request_document(const SimulatedProcess& process) {
  Json json = {{"schema", "metaldoctor.sim-request/1"},
               {"images", Json::array()},
               {"arch", process.arch},
               {"metal", process.metal},
               {"devices", Json::array()}};
  for (std::size_t i = 0; i < process.images.size(); ++i) {
    const std::string path =
        i == 0 ? std::string(kVerifiedPath) : fmt::format("/verified/{}/library.dylib", i + 1);
    json["images"].push_back({{"path", path}, {"bytes", hex_text(process.images[i])}});
  }
  for (std::size_t i = 0; i < process.devices; ++i) {
    const std::string_view driver = i == 0 ? first_driver(process) : second_driver(process);
    json["devices"].push_back(
        {{"capture", process.capture}, {"driver", driver}, {"wrapper", process.wrapper}});
  }
  if (!process.system.empty()) json["system"] = process.system;
  json["steps"] = process.steps;
  json["runs"] = Json::array();
  for (const SimulatedRun& run : process.runs) {
    json["runs"].push_back({{"id", run.id}, {"environment", run.environment}});
  }
  json["budget"] = {
      {"instructions", 20'000'000}, {"memory", std::uint64_t{16} << 20}, {"milliseconds", 10'000}};
  return json;
}

}  // namespace metaldoctor
