#include "shim/search.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>

namespace metaldoctor {
namespace {

using Mask = std::uint32_t;
constexpr std::size_t kNone = static_cast<std::size_t>(-1);

std::size_t find_choice(const SearchProblem& problem, const QueryKey& key) {
  for (std::size_t i = 0; i < problem.choices.size(); ++i) {
    if (problem.choices[i].answer.key == key) return i;
  }
  return kNone;
}

template <typename Changed>
bool breaks(const SearchProblem::Implication& implication, const Changed& changed,
            const World& world) {
  if (!changed(implication.whole) && !changed(implication.part)) return false;
  if (world({AtomKind::answer, implication.whole, {}}) != Value{true}) return false;
  const Value part = world({AtomKind::answer, implication.part, {}});
  return part != Value{true} && (is_known(part) || implication.part_must_be_known);
}

/// One connected part of a problem: indices into it.
struct Component {
  std::vector<std::size_t> choices, goals, guards, implications;
};

/// Which choices each goal, guard and implication mentions, and so what hangs together.
class Components {
 public:
  explicit Components(const SearchProblem& problem) : problem_(problem) {
    parent_.resize(problem.choices.size());
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
    for (const Predicate& goal : problem.goals) goals_.push_back(join(mentioned(goal)));
    for (const auto& guard : problem.guards) guards_.push_back(join(mentioned(guard.predicate)));
    for (const auto& implication : problem.implications) {
      implications_.push_back(
          join({find_choice(problem, implication.whole), find_choice(problem, implication.part)}));
    }
  }

  std::vector<Component> split() {
    std::vector<Component> parts(parent_.size());
    for (std::size_t i = 0; i < parent_.size(); ++i) parts[root(i)].choices.push_back(i);
    for (std::size_t i = 0; i < goals_.size(); ++i) place(goals_[i], i, parts, &Component::goals);
    for (std::size_t i = 0; i < guards_.size(); ++i) {
      place(guards_[i], i, parts, &Component::guards);
    }
    for (std::size_t i = 0; i < implications_.size(); ++i) {
      place(implications_[i], i, parts, &Component::implications);
    }
    std::erase_if(parts, [](const Component& part) { return part.choices.empty(); });
    return parts;
  }

 private:
  std::vector<std::size_t> mentioned(const Predicate& predicate) const {
    std::vector<std::size_t> found;
    for (const Atom& atom : predicate.atoms()) {
      if (atom.kind == AtomKind::answer) found.push_back(find_choice(problem_, atom.key));
    }
    return found;
  }
  std::size_t root(std::size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  std::size_t join(const std::vector<std::size_t>& indices) {
    std::size_t first = kNone;
    for (std::size_t index : indices) {
      if (index == kNone) continue;
      if (first == kNone) first = index;
      parent_[root(index)] = root(first);
    }
    return first;
  }
  void place(std::size_t choice, std::size_t index, std::vector<Component>& parts,
             std::vector<std::size_t> Component::* list) {
    if (choice != kNone) (parts[root(choice)].*list).push_back(index);
  }

  const SearchProblem& problem_;
  std::vector<std::size_t> parent_, goals_, guards_, implications_;
};

/// Evaluates subsets of one component.
class Evaluator {
 public:
  Evaluator(const SearchProblem& problem, const Component& part) : problem_(problem), part_(part) {
    for (std::size_t i = 0; i < part.choices.size(); ++i) {
      const auto& choice = problem.choices[part.choices[i]];
      if (choice.forced) forced_ |= Mask{1} << i;
      if (choice.raises_family) families_ |= Mask{1} << i;
    }
    world_ = [this](const Atom& atom) { return look_up(atom); };
  }
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  Mask forced() const { return forced_; }
  int raised_families(Mask mask) const { return std::popcount(mask & families_); }

  bool coherent(Mask mask) {
    mask_ = mask;
    const auto changed = [this](const QueryKey& key) { return chosen(key); };
    return std::none_of(part_.implications.begin(), part_.implications.end(), [&](std::size_t i) {
      return breaks(problem_.implications[i], changed, world_);
    });
  }
  bool keeps_guards(Mask mask) {
    mask_ = mask;
    return std::all_of(part_.guards.begin(), part_.guards.end(), [&](std::size_t i) {
      const auto& guard = problem_.guards[i];
      return guard.allows(guard.predicate.evaluate(world_));
    });
  }
  bool opens(std::size_t goal, Mask mask) {
    mask_ = mask;
    return problem_.goals[goal].evaluate(world_) == Truth::yes;
  }
  std::size_t opened(Mask mask) {
    return static_cast<std::size_t>(
        std::count_if(part_.goals.begin(), part_.goals.end(),
                      [&](std::size_t goal) { return opens(goal, mask); }));
  }
  std::vector<std::size_t> indices(Mask mask) const {
    std::vector<std::size_t> chosen;
    for (std::size_t i = 0; i < part_.choices.size(); ++i) {
      if (mask >> i & 1) chosen.push_back(part_.choices[i]);
    }
    return chosen;
  }

 private:
  bool chosen(const QueryKey& key) const {
    for (std::size_t i = 0; i < part_.choices.size(); ++i) {
      if (mask_ >> i & 1 && problem_.choices[part_.choices[i]].answer.key == key) return true;
    }
    return false;
  }
  Value look_up(const Atom& atom) const {
    if (atom.kind == AtomKind::answer) {
      for (std::size_t i = 0; i < part_.choices.size(); ++i) {
        const Answer& answer = problem_.choices[part_.choices[i]].answer;
        if (mask_ >> i & 1 && answer.key == atom.key) return answer.value;
      }
    }
    return problem_.base(atom);
  }

  const SearchProblem& problem_;
  const Component& part_;
  Mask forced_ = 0;
  Mask families_ = 0;
  Mask mask_ = 0;
  World world_;
};

/// Calls `visit` with every mask of `count` bits that holds `forced`, by ascending size;
/// `next_size` is asked before each size and ends the walk with false.
template <typename NextSize, typename Visit>
void by_size(std::size_t count, Mask forced, NextSize next_size, Visit visit) {
  const auto total = static_cast<int>(count);
  for (int size = std::popcount(forced); size <= total; ++size) {
    if (!next_size()) return;
    const std::uint64_t end = std::uint64_t{1} << count;
    std::uint64_t mask = (std::uint64_t{1} << size) - 1;
    while (mask < end) {
      if ((mask & forced) == forced) visit(static_cast<Mask>(mask));
      if (mask == 0) break;
      // Gosper's next number with as many bits.
      const std::uint64_t low = mask & (~mask + 1);
      const std::uint64_t ripple = mask + low;
      mask = ((mask ^ ripple) >> 2) / low | ripple;
    }
  }
}

struct Best {
  std::size_t opened = 0;
  int size = 0;
  int families = 0;
  std::vector<std::size_t> chosen;
};

/// Whether `a` is to be preferred over `b`.
bool better(const Best& a, const Best& b) {
  return std::tuple(b.opened, a.size, a.families, a.chosen) <
         std::tuple(a.opened, b.size, b.families, b.chosen);
}

bool search_component(const SearchProblem& problem, const Component& part,
                      SearchSolution& solution) {
  Evaluator evaluator(problem, part);
  std::optional<Best> best;
  std::size_t ties = 0;
  const auto unfinished = [&] { return !best || best->opened < part.goals.size(); };
  by_size(part.choices.size(), evaluator.forced(), unfinished, [&](Mask mask) {
    ++solution.examined;
    if (!evaluator.coherent(mask)) {
      ++solution.incoherent;
      return;
    }
    if (!evaluator.keeps_guards(mask)) return;
    Best candidate{evaluator.opened(mask), std::popcount(mask), evaluator.raised_families(mask),
                   evaluator.indices(mask)};
    if (best && candidate.opened == best->opened && candidate.size == best->size) ++ties;
    if (!best || candidate.opened > best->opened) ties = 1;
    if (!best || better(candidate, *best)) best = std::move(candidate);
  });
  if (!best) return false;
  solution.minimal_sets *= ties;
  solution.chosen.insert(solution.chosen.end(), best->chosen.begin(), best->chosen.end());
  return true;
}

tl::unexpected<Diagnostic> too_many(std::size_t count) {
  return fail(Fault::refused, "too-many-candidates", "",
              std::to_string(count) + " answers hang together; at most " +
                  std::to_string(kMaxConnectedChoices) + " are searched exhaustively",
              "ask for fewer programs or paths at a time");
}

}  // namespace

bool SearchProblem::Guard::allows(Truth truth) const {
  if (truth == Truth::no) return !no_forbidden;
  return truth == Truth::yes ? !yes_forbidden : !unknown_forbidden;
}

World with_choices(const SearchProblem& problem, const std::vector<std::size_t>& chosen) {
  std::vector<Answer> answers;
  for (std::size_t i : chosen) answers.push_back(problem.choices[i].answer);
  return [base = problem.base, answers = std::move(answers)](const Atom& atom) {
    for (const Answer& answer : answers) {
      if (atom.kind == AtomKind::answer && answer.key == atom.key) return answer.value;
    }
    return base(atom);
  };
}

std::vector<SearchProblem::Implication> broken_implications(
    const SearchProblem& problem, const std::vector<std::size_t>& chosen) {
  const World world = with_choices(problem, chosen);
  const auto changed = [&](const QueryKey& key) {
    return std::any_of(chosen.begin(), chosen.end(),
                       [&](std::size_t i) { return problem.choices[i].answer.key == key; });
  };
  std::vector<SearchProblem::Implication> broken;
  for (const auto& implication : problem.implications) {
    if (breaks(implication, changed, world)) broken.push_back(implication);
  }
  return broken;
}

Result<SearchSolution> search(const SearchProblem& problem) {
  SearchSolution solution;
  solution.minimal_sets = 1;
  solution.feasible = true;
  for (const Component& part : Components(problem).split()) {
    if (part.choices.size() > kMaxConnectedChoices) return too_many(part.choices.size());
    if (!search_component(problem, part, solution)) solution.feasible = false;
  }
  std::sort(solution.chosen.begin(), solution.chosen.end());
  if (!solution.feasible) {
    solution.chosen.clear();
    solution.minimal_sets = 0;
  }
  const World world = with_choices(problem, solution.chosen);
  for (const auto& guard : problem.guards) {  // also those that no choice can move
    if (!guard.allows(guard.predicate.evaluate(world))) solution.feasible = false;
  }
  for (const Predicate& goal : problem.goals) {
    solution.opened.push_back(solution.feasible && goal.evaluate(world) == Truth::yes);
  }
  return solution;
}

Result<std::vector<std::vector<std::size_t>>> minimal_openings(const SearchProblem& problem,
                                                               std::size_t limit) {
  // One component: what the goal does not reach is never chosen by a minimal set.
  std::vector<std::vector<std::size_t>> openings;
  for (const Component& part : Components(problem).split()) {
    if (std::find(part.goals.begin(), part.goals.end(), std::size_t{0}) == part.goals.end()) {
      continue;
    }
    if (part.choices.size() > kMaxConnectedChoices) return too_many(part.choices.size());
    Evaluator evaluator(problem, part);
    std::vector<Mask> found;
    by_size(
        part.choices.size(), evaluator.forced(), [&] { return found.size() < limit; },
        [&](Mask mask) {
          const bool covered =
              std::any_of(found.begin(), found.end(), [&](Mask m) { return (mask & m) == m; });
          if (covered || found.size() == limit || !evaluator.opens(0, mask)) return;
          if (evaluator.coherent(mask) && evaluator.keeps_guards(mask)) found.push_back(mask);
        });
    for (Mask mask : found) openings.push_back(evaluator.indices(mask));
  }
  return openings;
}

}  // namespace metaldoctor
