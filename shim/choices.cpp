#include "shim/choices.h"
#include "tables/hazard_match.h"

#include <algorithm>

namespace metaldoctor {

namespace {

constexpr std::string_view kFamilyQuery = "supportsFamily:";

QueryKey key_of(const Family& family) {
  return {std::string(kFamilyQuery), {family.value}};
}

bool has_choice(const SearchProblem& problem, const QueryKey& key) {
  return std::any_of(problem.choices.begin(), problem.choices.end(),
                     [&](const auto& choice) { return choice.answer.key == key; });
}

}  // namespace

ProblemBuilder::ProblemBuilder(const Situation& situation, std::set<std::string> accepted,
                               std::vector<Answer> forced, std::vector<Answer> pinned)
    : situation_(situation),
      accepted_(std::move(accepted)),
      forced_(std::move(forced)),
      pinned_(std::move(pinned)) {}

bool ProblemBuilder::is_pinned(const QueryKey& key) const {
  return std::ranges::find(pinned_, key, &Answer::key) != pinned_.end();
}

SearchProblem::Choice ProblemBuilder::choice(Answer answer, bool forced) const {
  SearchProblem::Choice made;
  made.forced = forced;
  made.raises_family =
      situation_.family(answer.key) && is_raised(situation_.guest_answer(answer.key), answer.value);
  made.answer = std::move(answer);
  return made;
}

void ProblemBuilder::add_choice(SearchProblem& problem, const QueryKey& key) const {
  if (!situation_.overridable(key) || is_pinned(key) || has_choice(problem, key)) return;
  const auto host = situation_.host_answer(key);
  if (!host || host->answer.value == situation_.guest_answer(key)) return;
  problem.choices.push_back(choice({key, host->answer.value}, false));
}

/// Adds the families that coherence may ask for: what a raised one includes, and what includes a
/// lowered one.
void ProblemBuilder::close(SearchProblem& problem) const {
  const Tables& tables = situation_.tables();
  for (std::size_t i = 0; i < problem.choices.size(); ++i) {  // grows while it is walked
    const Answer answer = problem.choices[i].answer;
    const Family* family = situation_.family(answer.key);
    if (!family) continue;
    if (answer.value == Value{true}) {
      for (const std::string& name : family->implies) {
        const Family* part = tables.family(name);
        if (!part) continue;
        const Value value = situation_.guest_answer(key_of(*part));
        if (value == Value{false} || (!is_known(value) && part->line == family->line)) {
          add_choice(problem, key_of(*part));
        }
      }
      continue;
    }
    for (const Family& whole : tables.families()) {
      const auto& parts = whole.implies;
      if (std::find(parts.begin(), parts.end(), family->short_name) == parts.end()) continue;
      const auto host = situation_.host_answer(key_of(whole));
      if (host && host->answer.value == Value{false}) add_choice(problem, key_of(whole));
    }
  }
}

void ProblemBuilder::add_implications(SearchProblem& problem) const {
  for (const Family& whole : situation_.tables().families()) {
    for (const std::string& name : whole.implies) {
      const Family* part = situation_.tables().family(name);
      if (!part) continue;
      if (!has_choice(problem, key_of(whole)) && !has_choice(problem, key_of(*part))) continue;
      problem.implications.push_back({key_of(whole), key_of(*part), whole.line == part->line});
    }
  }
}

World ProblemBuilder::forced_world() const {
  return [guest = situation_.guest(), forced = forced_](const Atom& atom) {
    for (const Answer& answer : forced) {
      if (atom.kind == AtomKind::answer && atom.key == answer.key) return answer.value;
    }
    return guest(atom);
  };
}

/// Harm paths that are closed stay closed. What is open in the guest and on the host stays open:
/// a change that closes it would be a loss that the host does not have.
void ProblemBuilder::add_guards(SearchProblem& problem, const std::vector<Path>& around,
                                Lift lift) const {
  const World guest = situation_.guest();
  const World host = situation_.host_world();
  const World forced = forced_world();
  for (const Path& path : around) {
    SearchProblem::Guard guard{.predicate = path.predicate};
    const Truth before = path.predicate.evaluate(guest);
    if (path.side == Rule::Side::harm) {
      if (before == Truth::yes || lift != Lift::nothing || accepted_.contains(path.id)) continue;
      guard.yes_forbidden = true;
      guard.unknown_forbidden = before == Truth::no;
    } else if (path.side == Rule::Side::gain) {
      const bool open = before == Truth::yes && path.predicate.evaluate(host) == Truth::yes &&
                        path.predicate.evaluate(forced) == Truth::yes;
      if (!open) continue;
      guard.no_forbidden = guard.unknown_forbidden = true;
    } else {
      continue;
    }
    problem.guards.push_back(std::move(guard));
  }
}

SearchProblem ProblemBuilder::build(const std::vector<const Path*>& goals,
                                    const std::vector<Path>& around, Lift lift) const {
  SearchProblem problem;
  problem.base = situation_.guest();
  for (const Answer& answer : forced_) problem.choices.push_back(choice(answer, true));
  for (const Path* goal : goals) {
    problem.goals.push_back(goal->predicate);
    for (const Atom& atom : goal->predicate.atoms()) {
      if (atom.kind == AtomKind::answer) add_choice(problem, atom.key);
    }
  }
  close(problem);
  std::erase_if(problem.choices, [&](const auto& choice) {
    return !choice.forced && lift == Lift::nothing && !hazards(choice.answer, around).empty();
  });
  std::sort(problem.choices.begin(), problem.choices.end(),
            [](const auto& a, const auto& b) { return a.answer.key < b.answer.key; });
  add_implications(problem);
  add_guards(problem, around, lift);
  return problem;
}

std::vector<const Path*> ProblemBuilder::opened_harm(const World& world,
                                                     const std::vector<Path>& around) const {
  std::vector<const Path*> opened;
  for (const Path& path : around) {
    if (path.side != Rule::Side::harm || accepted_.contains(path.id)) continue;
    const Truth before = path.predicate.evaluate(situation_.guest());
    const Truth after = path.predicate.evaluate(world);
    const bool worse = before == Truth::no ? after != Truth::no : after == Truth::yes;
    if (before != Truth::yes && worse) opened.push_back(&path);
  }
  return opened;
}

}  // namespace metaldoctor
