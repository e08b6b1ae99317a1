#pragma once
#include <string>
#include <vector>

#include "scanners/code/findings.h"

namespace metaldoctor {

/// A question or gate of which one image has more than the other. Addresses and functions are left
/// out: they move with every build.
struct FindingsChange {
  enum class Kind : std::uint8_t { question, gate } kind = Kind::question;
  std::string what;                   ///< "supportsFamily:1007", or the gate's expression
  std::size_t first = 0, second = 0;  ///< how often each image has it
};

/// What two builds of a program ask, and what hangs on it: by kind, then by text.
std::vector<FindingsChange> compare_findings(const Findings& first, const Findings& second);

}  // namespace metaldoctor
