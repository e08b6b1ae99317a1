#pragma once
#include <set>
#include <string>
#include <vector>

#include "shim/hazards.h"
#include "shim/search.h"
#include "shim/world.h"

namespace metaldoctor {

/// Turns paths into search problems. Every choice is the host's own answer or one that the user
/// insists on, so nothing found is above the host.
class ProblemBuilder {
 public:
  /// What is ignored, to learn what stands in the way of a path.
  enum class Lift { nothing, hazards_and_harm };

  /// `forced` changes are in every set; what is `pinned` is never changed.
  ProblemBuilder(const Situation& situation, std::set<std::string> accepted,
                 std::vector<Answer> forced, std::vector<Answer> pinned);

  /// `goals` are to be opened; the hazards and guards are those of `around`.
  SearchProblem build(const std::vector<const Path*>& goals, const std::vector<Path>& around,
                      Lift lift = Lift::nothing) const;

  std::vector<AppliedHazard> hazards(const Answer& change, const std::vector<Path>& around) const {
    return hazards_of(situation_, change, around, accepted_);
  }
  /// Harm paths of `around` that `world` opens and the guest does not.
  std::vector<const Path*> opened_harm(const World& world, const std::vector<Path>& around) const;
  const Situation& situation() const { return situation_; }
  const std::vector<Answer>& forced() const { return forced_; }
  const std::vector<Answer>& pinned() const { return pinned_; }
  bool is_pinned(const QueryKey& key) const;
  const std::set<std::string>& accepted() const { return accepted_; }
  /// The same without what the user insists on.
  ProblemBuilder unconstrained() const { return {situation_, accepted_, {}, {}}; }
  World forced_world() const;

 private:
  void add_choice(SearchProblem& problem, const QueryKey& key) const;
  void close(SearchProblem& problem) const;
  void add_implications(SearchProblem& problem) const;
  void add_guards(SearchProblem& problem, const std::vector<Path>& around, Lift lift) const;
  SearchProblem::Choice choice(Answer answer, bool forced) const;

  const Situation& situation_;
  std::set<std::string> accepted_;
  std::vector<Answer> forced_, pinned_;
};

}  // namespace metaldoctor
