#pragma once
// The requests that verify_behaviour sends to the simulator.
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "scanners/macho/bytes.h"
#include "tables/answer.h"
#include "tables/document.h"

namespace metaldoctor {

/// Where the library lies in the simulated process.
inline constexpr std::string_view kVerifiedPath = "/verified/library.dylib";

struct SimulatedRun {
  std::string id;
  std::map<std::string, std::string> environment;
};

/// A process with the library and two devices of different driver classes.
struct SimulatedProcess {
  std::string arch;
  Json capture;
  bool bare_metal = false;
  std::vector<std::vector<std::uint8_t>> images;  ///< the first at kVerifiedPath
  std::string metal = "start";
  std::string wrapper = "none";
  std::size_t devices = 2;
  Json system = Json::array();
  Json steps = Json::array();
  std::vector<SimulatedRun> runs;
};

/// The class that a library is expected to change, and one that it has to leave alone.
std::string_view first_driver(const SimulatedProcess& process);
std::string_view second_driver(const SimulatedProcess& process);

Json initializers_step();
/// Every known question, and `more`.
std::vector<Json> ask_steps(const std::vector<QueryKey>& more);
Json call_step(std::uint64_t address);

Json request_document(const SimulatedProcess& process);

}  // namespace metaldoctor
