#pragma once
#include <string>
#include <vector>

#include "scanners/code/app_match.h"
#include "scanners/code/findings.h"
#include "shim/recommend.h"

namespace metaldoctor {

/// A program that an audited image was recognised as, and how its rules fare against the binary.
struct RecognisedProgram {
  AppMatch match;
  const App* app = nullptr;
  const AppRange* range = nullptr;  ///< the newest range the markers allow; null = none
  std::vector<RuleCheck> rules;     ///< of that range
};

/// Looks the matches up in the tables and holds each range's rules against the findings.
std::vector<RecognisedProgram> recognise(const Tables& tables, const std::vector<AppMatch>& matches,
                                         const Findings& findings);

/// The paths of a binary. A recognised program's rules give names and known effects, except those
/// that the binary contradicts. Every other gate that hangs on answers and does more than log is a
/// path of its own, once for each side that does something; a flag and the gates of its readers
/// that test nothing else are one path. Gates that are only likely are listed but not wanted.
/// Ladders are information, not paths.
std::vector<Path> paths_of(const Findings& findings,
                           const std::vector<RecognisedProgram>& programs);

}  // namespace metaldoctor
