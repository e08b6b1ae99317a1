#pragma once
#include <set>
#include <string>
#include <vector>

#include "shim/world.h"

namespace metaldoctor {

/// A hazard that forbids a changed answer.
struct AppliedHazard {
  const Hazard* hazard = nullptr;
  std::string program;  ///< whose it is; empty = of the process, whatever runs in it
};

/// Hazards of changing the guest's answer to `change` for these paths. One of scope process applies
/// to every device that is not known to be bare metal; one of scope program applies where it names
/// the program of a path, or where a path that hangs on the answer sends one of its selectors. An
/// unknown OS is taken as the assumed one. Accepted ones are left out.
std::vector<AppliedHazard> hazards_of(const Situation& situation, const Answer& change,
                                      const std::vector<Path>& paths,
                                      const std::set<std::string>& accepted);

/// Those that would apply if the OS were old enough, and that only the assumed OS rules out.
std::vector<AppliedHazard> assumed_away(const Situation& situation, const Answer& change,
                                        const std::vector<Path>& paths,
                                        const std::set<std::string>& accepted);

}  // namespace metaldoctor
