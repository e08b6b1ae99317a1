#pragma once
#include <vector>

#include "shim/choices.h"

namespace metaldoctor {

/// The answers that the user insists on, checked one by one.
struct Settings {
  std::vector<Answer> forced;        ///< those that may be taken and change something
  std::vector<Answer> pinned;        ///< the guest answers so already, and it must stay so
  std::vector<Diagnostic> refusals;  ///< above-host, hazard
};

/// Errors: usage (no such query, not overridable, wrong kind of value, below zero, set twice).
/// Where an obstacle stands in the way nothing is bounded: what raises an answer is refused.
Result<Settings> check_settings(const Situation& situation, const std::vector<Answer>& set,
                                const std::vector<Path>& paths,
                                const std::set<std::string>& accepted);

}  // namespace metaldoctor
