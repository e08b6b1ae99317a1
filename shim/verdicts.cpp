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

World with_answers(const World& base, std::vector<Answer> answers) {
  return [base, answers = std::move(answers)](const Atom& atom) {
    for (const Answer& answer : answers) {
      if (atom.kind == AtomKind::answer && answer.key == atom.key) return answer.value;
    }
    return base(atom);
  };
}

/// A harm path that the guest takes as it is: which answer would close it, or that none does.
void classify_harmful_open(const Situation& situation, PathState& state) {
  state.verdict = PathState::Verdict::harmful_open;
  const auto negation =
      Predicate::from_json(Json::object({{"not", state.path.predicate.to_json()}}));
  if (!negation) {
    add(state.because, negation.error().what);
    return;
  }
  const Predicate& closed = *negation;
  if (const auto facts = closing_facts(situation, closed)) {
    std::vector<std::string> texts;
    for (const Atom& atom : *facts) texts.push_back(situation.describe(atom));
    add(state.because,
        fmt::format("no answer closes it{}{}", texts.empty() ? "" : ": ", fmt::join(texts, ", ")));
    return;
  }
  const World guest = situation.guest();
  for (const Atom& atom : closed.atoms()) {
    const Value value = guest(atom);
    if (!situation.overridable(atom) || !std::holds_alternative<bool>(value)) continue;
    const Answer other{atom.key, !std::get<bool>(value)};
    if (closed.evaluate(with_answers(guest, {other})) != Truth::yes) continue;
    add(state.because,
        fmt::format("{}={} would close it", to_string(atom), to_string(other.value)));
  }
  if (state.because.empty())
    add(state.because, "only several other answers together might close it");
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
  if (!situation.is_apple_gpu()) {
    state.verdict = PathState::Verdict::not_unlockable;
    add(state.because, situation.obstacle()->what);
    return;
  }
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
    if (situation.obstacle())
      add(state.because, situation.obstacle()->what);
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

std::string text_of(const Answer& answer) {
  return fmt::format("{}={}", to_string(answer.key), to_string(answer.value));
}

std::vector<Answer> answers_of(const SearchProblem& problem, const std::vector<std::size_t>& set) {
  std::vector<Answer> answers;
  for (std::size_t i : set) answers.push_back(problem.choices[i].answer);
  return answers;
}

std::vector<Answer> joined(std::vector<Answer> answers, const std::vector<Answer>& more) {
  answers.insert(answers.end(), more.begin(), more.end());
  return answers;
}

/// Each hazard once, with the answers that it forbids.
class ForbiddenAnswers {
 public:
  void note(const AppliedHazard& applied, const Answer& answer) {
    auto row = std::find_if(rows_.begin(), rows_.end(), [&](const Row& known) {
      return known.hazard == applied.hazard && known.program == applied.program;
    });
    if (row == rows_.end()) row = rows_.insert(row, {applied.hazard, applied.program, {}});
    add(row->answers, text_of(answer));
  }
  void name(std::vector<std::string>& out) const {
    for (const Row& row : rows_) {
      add(out, fmt::format("hazard {}{} forbids {}", row.hazard->id,
                           row.program.empty() ? "" : fmt::format(" ({})", row.program),
                           fmt::join(row.answers, ", ")));
    }
  }

 private:
  struct Row {
    const Hazard* hazard;
    std::string program;
    std::vector<std::string> answers;
  };
  std::vector<Row> rows_;
};

/// Whether the path stays closed only because of what the user set; says so then.
bool ruled_out_by_user(const ProblemBuilder& builder, const std::vector<Path>& paths,
                       PathState& state) {
  if (builder.forced().empty() && builder.pinned().empty()) return false;
  const auto free = builder.unconstrained().build({&state.path}, paths);
  const auto openings = minimal_openings(free, kMaxOpenings);
  if (!openings || openings->empty()) return false;
  for (const auto* set : {&builder.forced(), &builder.pinned()}) {
    for (const Answer& answer : *set) {
      const bool matters =
          std::any_of(openings->begin(), openings->end(), [&](const auto& opening) {
            return std::any_of(opening.begin(), opening.end(), [&](std::size_t i) {
              return free.choices[i].answer.key == answer.key &&
                     free.choices[i].answer.value != answer.value;
            });
          });
      const bool mentioned =
          state.path.predicate.atoms().contains({AtomKind::answer, answer.key, {}});
      if (matters || mentioned) add(state.because, text_of(answer) + " was set by the user");
    }
  }
  if (state.because.empty()) add(state.because, "the answers set by the user keep it closed");
  state.verdict = PathState::Verdict::not_wanted;
  return true;
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
    const bool harm = paths[i].side == Rule::Side::harm;
    if (state.guest == Truth::yes && harm)
      classify_harmful_open(situation, state);
    else if (state.guest == Truth::yes)
      state.verdict = PathState::Verdict::already_open;
    else if (harm)
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
  if (chosen.empty() && ruled_out_by_user(builder, paths, state)) return;
  const auto problem = builder.build({&state.path}, paths, ProblemBuilder::Lift::hazards_and_harm);
  const auto openings = minimal_openings(problem, kMaxOpenings);
  state.verdict = PathState::Verdict::hazard;
  if (!openings || openings->empty()) {
    state.verdict = PathState::Verdict::undetermined;
    add(state.because,
        openings ? "no coherent set of the host's answers opens it" : openings.error().what);
    return;
  }
  ForbiddenAnswers forbidden;
  std::vector<std::string> harmful;
  for (const auto& opening : *openings) {
    const std::vector<Answer> answers = answers_of(problem, opening);
    for (const Answer& answer : answers) {
      for (const AppliedHazard& applied : builder.hazards(answer, paths)) {
        forbidden.note(applied, answer);
      }
    }
    const World world = with_answers(problem.base, joined(answers, chosen));
    for (const Path* harm : builder.opened_harm(world, paths)) {
      add(harmful, "would open the harmful path " + harm->id);
    }
  }
  forbidden.name(state.because);
  for (std::string& text : harmful) add(state.because, std::move(text));
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
