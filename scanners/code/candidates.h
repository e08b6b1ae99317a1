#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "scanners/code/program.h"

namespace metaldoctor {

/// Which functions are worth decoding, found at memory speed.
struct Candidates {
  std::vector<std::uint64_t> functions;        ///< starts, sorted, unique
  std::map<std::string, std::size_t> counted;  ///< sites of selectors that are only counted
  std::size_t words = 0;                       ///< instruction words looked at
};

/// What makes a function a candidate.
struct CandidateGoals {
  bool queries = true;                ///< reaches a query, a device source or a compile selector
  bool ambiguous = true;              ///< also selectors that other classes answer
  bool registrations = false;         ///< calls sel_registerName or sel_getUid
  std::vector<std::uint64_t> places;  ///< data whose address is formed or loaded
};

/// arm64: looks at every 32-bit word of the code sections for branches into stubs of interest, and
/// for adrp, adr and literal loads that reach slots of interest.
Candidates find_candidates(const Program& program, const CandidateGoals& goals);

}  // namespace metaldoctor
