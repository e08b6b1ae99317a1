#include "shim/hazards.h"

#include <algorithm>

#include "tables/hazard_match.h"

namespace metaldoctor {

namespace {

bool contains(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

/// The program of these paths that the hazard is about.
std::optional<std::string> program_of(const Hazard& hazard, const Answer& change,
                                      const std::vector<Path>& paths) {
  const Atom atom{AtomKind::answer, change.key, {}};
  for (const Path& path : paths) {
    if (contains(hazard.programs, path.program)) return path.program;
    const bool sends = std::any_of(path.sends.begin(), path.sends.end(), [&](const auto& name) {
      return contains(hazard.or_gate_sends, name);
    });
    if (sends && path.predicate.atoms().contains(atom)) return path.program;
  }
  return std::nullopt;
}

/// Only the end of a range can fall to the assumption: the assumed OS is the newest there is.
bool is_assumed_away(const Hazard& hazard, const OsKnowledge& os) {
  return hazard.os_to && os.reaches(*hazard.os_to) == OsKnowledge::Reach::assumed_yes;
}

template <typename HoldsOn>
std::vector<AppliedHazard> collect(const Situation& situation, const Answer& change,
                                   const std::vector<Path>& paths,
                                   const std::set<std::string>& accepted, HoldsOn holds_on) {
  std::vector<AppliedHazard> applied;
  const auto host = situation.host_answer(change.key);
  const AnswerChange asked{change.key, change.value, situation.guest_answer(change.key),
                           host ? host->answer.value : Value{}};
  for (const Hazard& hazard : situation.tables().hazards()) {
    if (accepted.contains(hazard.id) || !is_about(situation.tables(), hazard, asked) ||
        !holds_on(hazard, situation.os())) {
      continue;
    }
    if (hazard.scope == Hazard::Scope::process) {
      if (situation.may_be_guest()) applied.push_back({&hazard, ""});
    } else if (auto program = program_of(hazard, change, paths)) {
      applied.push_back({&hazard, *std::move(program)});
    }
  }
  return applied;
}

}  // namespace

std::vector<AppliedHazard> hazards_of(const Situation& situation, const Answer& change,
                                      const std::vector<Path>& paths,
                                      const std::set<std::string>& accepted) {
  return collect(situation, change, paths, accepted, applies_on);
}

std::vector<AppliedHazard> assumed_away(const Situation& situation, const Answer& change,
                                        const std::vector<Path>& paths,
                                        const std::set<std::string>& accepted) {
  return collect(situation, change, paths, accepted, is_assumed_away);
}

}  // namespace metaldoctor
