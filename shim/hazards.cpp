#include "shim/hazards.h"

#include <algorithm>

namespace metaldoctor {

namespace {

bool contains(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

bool is_about(const Situation& situation, const HazardAnswer& row, const Answer& change) {
  if (row.query != "*" && row.query != change.key.query) return false;
  if (row.argument &&
      (change.key.arguments.empty() || change.key.arguments.front() != *row.argument)) {
    return false;
  }
  switch (row.when) {
    case HazardAnswer::When::raised:
      return is_raised(situation.guest_answer(change.key), change.value);
    case HazardAnswer::When::above_table: {
      const bool is_family = change.key.query == "supportsFamily:";
      if (is_family && !situation.family(change.key)) return change.value == Value{true};
      const auto limit = any_host_answer(situation.tables(), change.key);
      return limit && is_raised(limit->answer.value, change.value);
    }
    case HazardAnswer::When::above_host: {
      const auto host = situation.host_answer(change.key);
      return host && is_raised(host->answer.value, change.value);
    }
  }
  return false;
}

/// As everywhere else, an OS that is not known is the assumed one: a hazard of old systems must not
/// stop every guest whose log names no OS.
bool in_os_range(const OsKnowledge& os, const Hazard& hazard) {
  using Reach = OsKnowledge::Reach;
  if (hazard.os_from && os.reaches(*hazard.os_from) == Reach::no) return false;
  return !hazard.os_to || os.reaches(*hazard.os_to) == Reach::no;
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

}  // namespace

std::vector<AppliedHazard> hazards_of(const Situation& situation, const Answer& change,
                                      const std::vector<Path>& paths,
                                      const std::set<std::string>& accepted) {
  std::vector<AppliedHazard> applied;
  for (const Hazard& hazard : situation.tables().hazards()) {
    const bool about =
        std::any_of(hazard.answers.begin(), hazard.answers.end(),
                    [&](const auto& row) { return is_about(situation, row, change); });
    if (!about || accepted.contains(hazard.id) || !in_os_range(situation.os(), hazard)) continue;
    if (hazard.scope == Hazard::Scope::process) {
      if (situation.may_be_guest()) applied.push_back({&hazard, ""});
    } else if (auto program = program_of(hazard, change, paths)) {
      applied.push_back({&hazard, *std::move(program)});
    }
  }
  return applied;
}

}  // namespace metaldoctor
