#include "shim/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace metaldoctor {
namespace {

using State = PathState::Verdict;

std::size_t count(const Recommendation& r, State verdict) {
  return static_cast<std::size_t>(std::ranges::count(r.paths, verdict, &PathState::verdict));
}

/// Program-scoped and process-scoped hazards that left_alone names.
std::set<std::string> hazards_named(const Profile& profile) {
  constexpr std::string_view prefix = "hazard:";
  std::set<std::string> ids;
  for (const LeftAlone& alone : profile.left_alone) {
    if (alone.why.starts_with(prefix)) ids.insert(alone.why.substr(prefix.size()));
  }
  return ids;
}

struct Reason {
  State verdict;
  std::string_view text;
};

/// Why gains stay out of reach, most telling first.
constexpr std::array<Reason, 8> reasons = {{
    {State::hazard, "refused because of a hazard"},
    {State::above_host, "above the host"},
    {State::not_unlockable, "not a matter of answers"},
    {State::undetermined, "undetermined"},
    {State::harmful_open, "harmful and already taken"},
    {State::stays_closed, "harmful and kept closed"},
    {State::same_on_host, "closed on the host too"},
    {State::already_open, "already open"},
}};

}  // namespace

std::string summary(const Recommendation& recommendation) {
  const Recommendation& r = recommendation;
  if (!r.refusals.empty()) {
    std::vector<std::string> texts;
    for (const Diagnostic& refusal : r.refusals) texts.push_back(refusal.what);
    return fmt::format("refused, nothing is changed: {}", fmt::join(texts, "; "));
  }
  const std::size_t changes = r.profile.changes.size();
  if (changes > 0) {
    return fmt::format("{} changed answer(s) open {} path(s)", changes, count(r, State::opens));
  }
  std::vector<std::string> parts;
  for (const Reason& reason : reasons) {
    const std::size_t n = count(r, reason.verdict);
    if (n > 0) parts.push_back(fmt::format("{} {}", n, reason.text));
  }
  std::string text = "nothing to gain: no answer that may be changed opens a path";
  if (!parts.empty()) text += fmt::format(" ({})", fmt::join(parts, ", "));
  const std::set<std::string> hazards = hazards_named(r.profile);
  if (!hazards.empty()) {
    text += fmt::format("; answers refused by hazard: {}", fmt::join(hazards, ", "));
  }
  return text;
}

}  // namespace metaldoctor
