#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tables/answer.h"
#include "tables/predicate.h"

namespace metaldoctor {

/// The search behind recommend, on plain values: which answers to change so that goals hold.
struct SearchProblem {
  /// An answer that may be changed, and to what.
  struct Choice {
    Answer answer;
    bool forced = false;         ///< in every set
    bool raises_family = false;  ///< ties between sets of one size go to the fewest of these
  };
  /// A profile under which `whole` is yes must not leave `part` at no. Counts only where one of
  /// the two was changed: what a device contradicts by itself is not ours to mend.
  struct Implication {
    QueryKey whole;
    QueryKey part;
    bool part_must_be_known = false;
  };
  /// A predicate whose value may not be one of the forbidden ones.
  struct Guard {
    Predicate predicate;
    bool no_forbidden = false;
    bool yes_forbidden = false;
    bool unknown_forbidden = false;
    bool allows(Truth truth) const;
  };

  World base;                   ///< before any change
  std::vector<Choice> choices;  ///< one an answer key
  std::vector<Predicate> goals;
  std::vector<Guard> guards;
  std::vector<Implication> implications;
};

struct SearchSolution {
  bool feasible = false;            ///< some set keeps every guard and implication
  std::vector<std::size_t> chosen;  ///< indices of choices, ascending
  std::vector<bool> opened;         ///< by goal
  std::uint64_t examined = 0;
  std::uint64_t incoherent = 0;  ///< of these, rejected by an implication
  std::size_t minimal_sets = 0;  ///< how many sets are as good and as small as `chosen`
};

/// Choices that hang together (through a goal, a guard or an implication) are searched together,
/// every subset of them; more than this many are refused.
inline constexpr std::size_t kMaxConnectedChoices = 20;

/// The set that opens most goals, among these the smallest, among these the one with the fewest
/// raised families, then the lowest keys. Error "too-many-candidates".
Result<SearchSolution> search(const SearchProblem& problem);

/// Every set that opens goal 0, keeps guards and implications, and has no such subset. At most
/// `limit` of them, smallest first.
Result<std::vector<std::vector<std::size_t>>> minimal_openings(const SearchProblem& problem,
                                                               std::size_t limit);

/// The base world with some choices made.
World with_choices(const SearchProblem& problem, const std::vector<std::size_t>& chosen);
/// The implications that a set breaks.
std::vector<SearchProblem::Implication> broken_implications(const SearchProblem& problem,
                                                            const std::vector<std::size_t>& chosen);

}  // namespace metaldoctor
