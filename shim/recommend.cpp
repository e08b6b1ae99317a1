#include "shim/recommend.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "shim/left_alone.h"
#include "shim/settings.h"
#include "shim/summary.h"
#include "shim/verdicts.h"

namespace metaldoctor {

namespace {

/// '*' stands for any run of characters.
bool matches_pattern(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  if (!name.starts_with(pattern.substr(0, star))) return false;
  for (std::size_t at = star; at <= name.size(); ++at) {
    if (matches_pattern(pattern.substr(star + 1), name.substr(at))) return true;
  }
  return false;
}

bool is_named(const Path& path, std::string_view want) {
  const std::size_t slash = path.id.rfind('/');
  if (path.id == want || (slash != std::string::npos && path.id.substr(slash + 1) == want)) {
    return true;
  }
  return std::any_of(path.kernels.begin(), path.kernels.end(),
                     [&](const std::string& kernel) { return matches_pattern(kernel, want); });
}

Result<std::vector<bool>> select(const std::vector<Path>& paths,
                                 const std::vector<std::string>& want) {
  std::vector<bool> selected(paths.size());
  for (std::size_t i = 0; i < paths.size(); ++i) {
    selected[i] = want.empty() && paths[i].side == Rule::Side::gain;
  }
  for (const std::string& name : want) {
    bool found = false;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      if (is_named(paths[i], name)) selected[i] = found = true;
    }
    if (found) continue;
    std::vector<std::string> ids;
    for (const Path& path : paths) ids.push_back(path.id);
    return fail(Fault::usage, "unknown-path", name,
                fmt::format("no path or kernel is called '{}'", name),
                fmt::format("known: {}", fmt::join(ids, ", ")));
  }
  return selected;
}

std::vector<Path> without_repeats(const std::vector<Path>& paths) {
  std::vector<Path> unique;
  std::set<std::string> seen;
  for (const Path& path : paths) {
    if (seen.insert(path.id).second) unique.push_back(path);
  }
  return unique;
}

Result<std::set<std::string>> accepted_ids(const Tables& tables, const std::vector<Path>& paths,
                                           const std::vector<std::string>& ids) {
  for (const std::string& id : ids) {
    const bool is_path =
        std::any_of(paths.begin(), paths.end(), [&](const Path& path) { return path.id == id; });
    if (!is_path && !tables.hazard(id)) {
      return fail(Fault::usage, "unknown-hazard", id,
                  fmt::format("there is no hazard or harmful path '{}'", id));
    }
  }
  return std::set<std::string>(ids.begin(), ids.end());
}

class Advisor {
 public:
  Advisor(const Situation& situation, const RecommendOptions& options, std::vector<Path> paths,
          std::vector<bool> selected, std::set<std::string> accepted, Settings settings)
      : situation_(situation),
        options_(options),
        paths_(std::move(paths)),
        selected_(std::move(selected)),
        builder_(situation, std::move(accepted), std::move(settings.forced),
                 std::move(settings.pinned)) {
    out_.refusals = std::move(settings.refusals);
    out_.paths = classify(situation, paths_, selected_);
    for (const Path& path : paths_) by_program_[path.program].push_back(path);
  }

  Result<Recommendation> run() {
    describe_bound();
    if (situation_.obstacle()) {
      refuse(*situation_.obstacle());
    } else {
      auto searched = choose();
      if (!searched) return tl::unexpected(std::move(searched).error());
    }
    out_.profile.left_alone = left_alone(builder_, paths_, out_.profile.changes);
    note_passing();
    note_hazards_assumed_away();
    if (!out_.refusals.empty()) withdraw();
    out_.summary = summary(out_);
    return std::move(out_);
  }

 private:
  /// What changes besides the paths that were asked for.
  void note_passing() {
    const std::string_view changes = out_.refusals.empty() ? "changes" : "would change";
    for (PathState& state : out_.paths) {
      if (state.profile == state.guest || state.verdict == PathState::Verdict::opens) continue;
      const bool harm_opens = state.verdict == PathState::Verdict::stays_closed;
      const bool flips = state.profile == Truth::yes || state.guest == Truth::yes;
      if (!harm_opens && !flips) continue;
      if (harm_opens) state.because = {"its hazard was accepted"};
      if (harm_opens || state.path.side != Rule::Side::harm) {
        state.verdict = PathState::Verdict::not_wanted;
      }
      state.because.push_back(fmt::format("{} too: {} to {}", changes, to_string(state.guest),
                                          to_string(state.profile)));
    }
  }

  void note_hazards_assumed_away() {
    std::vector<std::string> ids;
    for (const Answer& answer : chosen_) {
      for (const auto& [hazard, program] :
           assumed_away(situation_, answer, paths_, builder_.accepted())) {
        if (std::find(ids.begin(), ids.end(), hazard->id) == ids.end()) ids.push_back(hazard->id);
      }
    }
    if (ids.empty()) return;
    out_.notes.push_back(
        fmt::format("ruled out only by the assumed macOS: {}", fmt::join(ids, ", ")));
  }

  /// Nothing is half given: with a refusal the profile is empty, and the paths are as in the guest.
  void withdraw() {
    out_.profile.changes.clear();
    for (PathState& state : out_.paths) {
      state.profile = state.guest;
      if (state.verdict == PathState::Verdict::opens) {
        state.verdict = PathState::Verdict::would_open;
      }
    }
    for (const Diagnostic& refusal : out_.refusals) {
      out_.notes.push_back(fmt::format("refused ({}): {}{}{}", refusal.code, refusal.what,
                                       refusal.hint.empty() ? "" : "; ", refusal.hint));
    }
    if (chosen_.empty()) return;
    out_.notes.push_back(
        "the profile is empty; the proof and what would open are those of a profile without what "
        "was refused");
  }

  void refuse(Diagnostic refusal) {
    auto& refusals = out_.refusals;
    if (std::find(refusals.begin(), refusals.end(), refusal) == refusals.end()) {
      refusals.push_back(std::move(refusal));
    }
  }

  void describe_bound() {
    out_.host = situation_.named_host();
    out_.os = situation_.os();
    out_.profile.bound = {situation_.host() ? situation_.host()->name : "",
                          out_.os.exact ? to_string(*out_.os.exact) : "",
                          std::string(situation_.tables().edition())};
    out_.profile.callers = options_.callers;
    out_.profile.scope = options_.scope;
    out_.profile.accepted_hazards = options_.accepted_hazards;
    std::set<Atom> atoms;
    for (const Path& path : paths_) atoms.merge(path.predicate.atoms());
    for (const Answer& answer : builder_.pinned()) {
      atoms.insert({AtomKind::answer, answer.key, {}});
    }
    out_.notes = situation_.assumptions(atoms);
    if (!situation_.capture().is_guest()) {
      out_.notes.push_back(
          "the capture does not show whether this is a guest: the hazards of "
          "guests are applied");
    }
  }

  /// Wanted paths that can be opened by themselves; the others get their verdict here.
  Result<std::vector<const Path*>> openable() {
    std::vector<const Path*> goals;
    for (PathState& state : out_.paths) {
      if (!state.wanted) continue;
      const auto alone = search(builder_.build({&state.path}, paths_));
      if (!alone) return tl::unexpected(alone.error());
      if (alone->opened.front())
        goals.push_back(&state.path);
      else
        explain_blocked(builder_, paths_, {}, state);
    }
    return goals;
  }

  Result<void> choose() {
    auto goals = openable();
    if (!goals) return tl::unexpected(std::move(goals).error());
    const SearchProblem problem = builder_.build(*goals, paths_);
    auto solution = search(problem);
    if (!solution) return tl::unexpected(std::move(solution).error());
    for (const auto& choice : problem.choices) out_.proof.candidates.push_back(choice.answer.key);
    out_.proof.assignments_examined = solution->examined;
    out_.proof.assignments_rejected_coherence = solution->incoherent;
    out_.proof.minimal_sets = solution->minimal_sets;
    if (!solution->feasible) {
      refuse_infeasible();
      return {};
    }
    record_states(problem, *solution);
    record_changes(problem, *solution);
    return find_conflicts();
  }

  /// Only answers that the user insists on can make the problem unsolvable.
  void refuse_infeasible() {
    std::vector<std::string> set, broken;
    for (const Answer& answer : builder_.forced()) {
      set.push_back(fmt::format("{}={}", to_string(answer.key), to_string(answer.value)));
    }
    const SearchProblem problem = builder_.build({}, paths_);
    std::vector<std::size_t> forced;
    for (std::size_t i = 0; i < problem.choices.size(); ++i) {
      if (problem.choices[i].forced) forced.push_back(i);
    }
    for (const auto& [whole, part, known] : broken_implications(problem, forced)) {
      broken.push_back(fmt::format("{} includes {}", to_string(whole), to_string(part)));
    }
    refuse(
        {Fault::refused, "incoherent", fmt::format("{}", fmt::join(set, ", ")),
         fmt::format("{} cannot be set with the other answers as they are: {}",
                     fmt::join(set, ", "),
                     broken.empty() ? "an open path would close, or a harmful one open"
                                    : fmt::format("{}", fmt::join(broken, ", "))),
         "a family includes the lower ones of its line: set those too, or accept their hazards"});
    for (PathState& state : out_.paths) {
      if (!state.wanted || !state.because.empty()) continue;
      state.because.push_back("the answers set contradict the others");
    }
  }

  void record_states(const SearchProblem& problem, const SearchSolution& solution) {
    const World world = with_choices(problem, solution.chosen);
    for (std::size_t i : solution.chosen) chosen_.push_back(problem.choices[i].answer);
    for (std::size_t i = 0; i < out_.paths.size(); ++i) {
      PathState& state = out_.paths[i];
      state.profile = state.path.predicate.evaluate(world);
      const bool asked_for = selected_[i] && state.path.side != Rule::Side::harm;
      if (asked_for && state.profile == Truth::yes && state.guest != Truth::yes) {
        state.wanted = true;  // also what only an answer set by the user opens
        state.verdict = PathState::Verdict::opens;
        state.because.clear();
      } else if (state.wanted && state.because.empty()) {
        explain_blocked(builder_, paths_, chosen_, state);
      }
    }
  }

  PathState* state_of(const std::string& id) {
    const auto state = std::find_if(out_.paths.begin(), out_.paths.end(),
                                    [&](const PathState& s) { return s.path.id == id; });
    return state == out_.paths.end() ? nullptr : &*state;
  }

  void record_changes(const SearchProblem& problem, const SearchSolution& solution) {
    for (std::size_t entry : solution.chosen) {
      std::vector<std::size_t> rest = solution.chosen;
      std::erase(rest, entry);
      const World world = with_choices(problem, rest);
      const Answer& answer = problem.choices[entry].answer;
      const auto host = situation_.host_answer(answer.key);
      SearchProof::Drop drop{answer.key, {}};
      ProfileChange change{answer, "", host ? host->evidence : Evidence::unknown, {}};
      for (PathState& state : out_.paths) {
        const bool closes = state.wanted && state.profile == Truth::yes &&
                            state.path.predicate.evaluate(world) != Truth::yes;
        if (closes) drop.closes.push_back(state.path.id);
        if (!closes || state.verdict != PathState::Verdict::opens) continue;
        change.opens.push_back(state.path.id);
        change.evidence = weaker(change.evidence, state.path.evidence);
        state.because.push_back(
            fmt::format("{}={}", to_string(answer.key), to_string(answer.value)));
      }
      for (const Path* harm : builder_.opened_harm(world, paths_)) {
        drop.closes.push_back("would open " + harm->id);
      }
      for (const auto& broken : broken_implications(problem, rest)) {
        drop.closes.push_back(fmt::format("coherence: {} includes {}",
                                          broken.whole.arguments.front(),
                                          broken.part.arguments.front()));
      }
      change.reason = problem.choices[entry].forced ? "set by the user" : reason(drop);
      if (!is_known(situation_.guest_answer(answer.key))) {
        change.reason += "; what this guest answers is not known";
      } else if (situation_.taken_from_stock(answer.key)) {
        change.reason += "; not read in this guest, taken as stock paravirtual guests answer it";
        change.evidence = weaker(change.evidence, Evidence::inferred);
      }
      out_.proof.drops.push_back(std::move(drop));
      out_.profile.changes.push_back(std::move(change));
    }
    for (PathState& state : out_.paths) {
      if (state.verdict == PathState::Verdict::opens && state.because.empty()) {
        state.because = mentioned_changes(state.path.predicate);
      }
    }
  }

  /// For a path that no single entry decides: more than one of them would do.
  std::vector<std::string> mentioned_changes(const Predicate& predicate) const {
    const std::set<Atom> atoms = predicate.atoms();
    std::vector<std::string> changes;
    for (const Answer& answer : chosen_) {
      if (!atoms.contains({AtomKind::answer, answer.key, {}})) continue;
      changes.push_back(fmt::format("{}={}", to_string(answer.key), to_string(answer.value)));
    }
    return changes;
  }

  static std::string reason(const SearchProof::Drop& drop) {
    if (drop.closes.empty()) return "one of several answers that open the same paths";
    return fmt::format("needed for {}", fmt::join(drop.closes, ", "));
  }

  /// Paths that their own program alone would get, and that the others forbid.
  Result<void> find_conflicts() {
    if (by_program_.size() < 2) return {};
    for (const auto& [program, own] : by_program_) {
      std::vector<const Path*> goals;
      for (const PathState& state : out_.paths) {
        if (state.wanted && state.path.program == program) goals.push_back(&state.path);
      }
      const auto alone = search(builder_.build(goals, own));
      if (!alone) return tl::unexpected(alone.error());
      std::vector<Path> others = paths_;
      std::erase_if(others, [&](const Path& path) { return path.program == program; });
      for (std::size_t i = 0; i < goals.size(); ++i) {
        PathState& state = *state_of(goals[i]->id);
        if (!alone->opened[i] || state.verdict == PathState::Verdict::opens) continue;
        auto found = conflicts_of(builder_, state.path, own, others, chosen_);
        std::move(found.begin(), found.end(), std::back_inserter(out_.conflicts));
      }
    }
    refuse_conflicts();
    return {};
  }

  void refuse_conflicts() {
    if (out_.conflicts.empty()) return;
    std::vector<std::string> against;
    for (const Conflict& conflict : out_.conflicts) {
      if (std::find(against.begin(), against.end(), conflict.against) != against.end()) continue;
      against.push_back(conflict.against);
    }
    refuse({Fault::refused, "conflict", "",
            fmt::format("one profile cannot serve these programs: {} of their paths need answers "
                        "that others forbid ({})",
                        out_.conflicts.size(), fmt::join(against, ", ")),
            "make one profile for each program"});
  }

  const Situation& situation_;
  const RecommendOptions& options_;
  std::vector<Path> paths_;
  std::vector<bool> selected_;
  ProblemBuilder builder_;
  std::map<std::string, std::vector<Path>> by_program_;
  std::vector<Answer> chosen_;
  Recommendation out_;
};

}  // namespace

Result<Recommendation> recommend(const Tables& tables, const Capture& guest,
                                 const std::vector<Path>& paths, const RecommendOptions& options) {
  std::vector<Path> unique = without_repeats(paths);
  auto selected = select(unique, options.want);
  if (!selected) return tl::unexpected(std::move(selected).error());
  auto accepted = accepted_ids(tables, unique, options.accepted_hazards);
  if (!accepted) return tl::unexpected(std::move(accepted).error());
  const Situation situation(tables, guest, options);
  auto settings = check_settings(situation, options.set, unique, *accepted);
  if (!settings) return tl::unexpected(std::move(settings).error());
  return Advisor(situation, options, std::move(unique), *std::move(selected), *std::move(accepted),
                 *std::move(settings))
      .run();
}

}  // namespace metaldoctor
