#include "shim/verdicts.h"

#include <fmt/format.h>

#include <algorithm>

#include "shim/reachability.h"

namespace metaldoctor {

namespace {

constexpr std::size_t kMaxOpenings = 16;

void add(std::vector<std::string>& list, std::string text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(std::move(text));
}

void name_unknowns(const Predicate& predicate, const World& world, std::vector<std::string>& out) {
  for (const Atom& atom : deciding_unknowns(predicate, world)) {
    add(out, to_string(atom) + " is unknown");
  }
  for (const std::string& reason : predicate.unknown_reasons()) add(out, reason);
}

void name_host_answers(const Situation& situation, const Predicate& predicate,
                       std::vector<std::string>& out) {
  for (const Atom& atom : predicate.atoms()) {
    if (!situation.overridable(atom)) continue;
    const auto host = situation.host_answer(atom.key);
    if (!host) continue;
    add(out, fmt::format("{} is {} on {} too", to_string(atom), to_string(host->answer.value),
                         situation.host()->name));
  }
}

/// A harm path: what keeps it closed.
void classify_harm(const Situation& situation, PathState& state) {
  if (state.guest == Truth::unknown) {
    state.verdict = PathState::Verdict::undetermined;
    name_unknowns(state.path.predicate, situation.guest(), state.because);
    return;
  }
  state.verdict = PathState::Verdict::stays_closed;
  for (const Atom& atom : state.path.predicate.atoms()) {
    if (!situation.overridable(atom)) continue;
    add(state.because,
        fmt::format("{} stays {}", to_string(atom), to_string(situation.guest_answer(atom.key))));
  }
}

/// A path that was asked for and is not open.
void classify_selected(const Situation& situation, PathState& state) {
  const Predicate& predicate = state.path.predicate;
  if (const auto closing = closing_facts(situation, predicate)) {
    state.verdict = PathState::Verdict::not_unlockable;
    for (const Atom& atom : *closing) add(state.because, situation.describe(atom));
    return;
  }
  if (state.host == Truth::yes) {
    state.wanted = true;
    return;
  }
  if (state.host == Truth::unknown) {
    state.verdict = PathState::Verdict::undetermined;
    if (!situation.host())
      add(state.because, "the host's chip is not known");
    else
      name_unknowns(predicate, situation.host_world(), state.because);
    return;
  }
  if (const auto denied = denied_openers(situation, predicate)) {
    state.verdict = PathState::Verdict::above_host;
    for (const Atom& atom : *denied) {
      add(state.because, fmt::format("{}: {} answers no", to_string(atom), situation.host()->name));
    }
    return;
  }
  state.verdict = PathState::Verdict::same_on_host;
  name_host_answers(situation, predicate, state.because);
}

std::vector<Answer> answers_of(const SearchProblem& problem, const std::vector<std::size_t>& set) {
  std::vector<Answer> answers;
  for (std::size_t i : set) answers.push_back(problem.choices[i].answer);
  return answers;
}

World with_answers(const World& base, std::vector<Answer> answers) {
  return [base, answers = std::move(answers)](const Atom& atom) {
    for (const Answer& answer : answers) {
      if (atom.kind == AtomKind::answer && answer.key == atom.key) return answer.value;
    }
    return base(atom);
  };
}

std::vector<Answer> joined(std::vector<Answer> answers, const std::vector<Answer>& more) {
  answers.insert(answers.end(), more.begin(), more.end());
  return answers;
}

std::string hazard_text(const Answer& answer, const AppliedHazard& applied) {
  return fmt::format("{}={}: hazard {}{}", to_string(answer.key), to_string(answer.value),
                     applied.hazard->id,
                     applied.program.empty() ? "" : fmt::format(" ({})", applied.program));
}

}  // namespace

std::vector<PathState> classify(const Situation& situation, const std::vector<Path>& paths,
                                const std::vector<bool>& selected) {
  std::vector<PathState> states;
  const World guest = situation.guest();
  const World host = situation.host_world();
  for (std::size_t i = 0; i < paths.size(); ++i) {
    PathState state;
    state.path = paths[i];
    state.guest = paths[i].predicate.evaluate(guest);
    state.host = paths[i].predicate.evaluate(host);
    state.profile = state.guest;
    if (state.guest == Truth::yes)
      state.verdict = PathState::Verdict::already_open;
    else if (paths[i].side == Rule::Side::harm)
      classify_harm(situation, state);
    else if (!selected[i])
      state.verdict = PathState::Verdict::not_wanted;
    else
      classify_selected(situation, state);
    states.push_back(std::move(state));
  }
  return states;
}

void explain_blocked(const ProblemBuilder& builder, const std::vector<Path>& paths,
                     const std::vector<Answer>& chosen, PathState& state) {
  const auto problem = builder.build({&state.path}, paths, ProblemBuilder::Lift::hazards_and_harm);
  const auto openings = minimal_openings(problem, kMaxOpenings);
  state.verdict = PathState::Verdict::hazard;
  if (!openings || openings->empty()) {
    state.verdict = PathState::Verdict::undetermined;
    add(state.because,
        openings ? "no coherent set of the host's answers opens it" : openings.error().what);
    return;
  }
  for (const auto& opening : *openings) {
    const std::vector<Answer> answers = answers_of(problem, opening);
    for (const Answer& answer : answers) {
      for (const AppliedHazard& applied : builder.hazards(answer, paths)) {
        add(state.because, hazard_text(answer, applied));
      }
    }
    const World world = with_answers(problem.base, joined(answers, chosen));
    for (const Path* harm : builder.opened_harm(world, paths)) {
      add(state.because, "would open the harmful path " + harm->id);
    }
  }
  if (state.because.empty()) add(state.because, "it would close a path that is open");
}

std::vector<Conflict> conflicts_of(const ProblemBuilder& builder, const Path& path,
                                   const std::vector<Path>& own, const std::vector<Path>& others,
                                   const std::vector<Answer>& chosen) {
  const SearchProblem problem = builder.build({&path}, own);
  const auto openings = minimal_openings(problem, kMaxOpenings);
  std::vector<Conflict> conflicts;
  if (!openings) return conflicts;
  const auto note = [&](const QueryKey& key, std::string against) {
    const bool known = std::any_of(conflicts.begin(), conflicts.end(), [&](const Conflict& c) {
      return c.key == key && c.against == against;
    });
    if (!known) conflicts.push_back({path.id, key, std::move(against)});
  };
  for (const auto& opening : *openings) {
    const std::vector<Answer> answers = answers_of(problem, opening);
    for (const Answer& answer : answers) {
      for (const AppliedHazard& applied : builder.hazards(answer, others)) {
        note(answer.key, fmt::format("{}: hazard {}", applied.program, applied.hazard->id));
      }
    }
    const World world = with_answers(problem.base, joined(answers, chosen));
    for (const Path* harm : builder.opened_harm(world, others)) {
      for (const Answer& answer : answers) {
        if (!harm->predicate.atoms().contains({AtomKind::answer, answer.key, {}})) continue;
        note(answer.key, fmt::format("{}: harmful path {}", harm->program, harm->id));
      }
    }
    if (conflicts.empty() && !answers.empty()) {
      note(answers.front().key, "the paths of the other programs");
    }
  }
  return conflicts;
}

}  // namespace metaldoctor
