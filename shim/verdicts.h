#pragma once
#include <vector>

#include "shim/choices.h"

namespace metaldoctor {

/// Guest and host state of every path, which are wanted, and the verdict on those that are not.
/// `selected`: by path, whether it was asked for.
std::vector<PathState> classify(const Situation& situation, const std::vector<Path>& paths,
                                const std::vector<bool>& selected);

/// Why a wanted path was not opened: the hazards and harm paths on every smallest way to it. With
/// `chosen`, what stands in the way beside these answers.
void explain_blocked(const ProblemBuilder& builder, const std::vector<Path>& paths,
                     const std::vector<Answer>& chosen, PathState& state);

/// What of the other programs forbids the answers that `path` needs and its own program allows.
std::vector<Conflict> conflicts_of(const ProblemBuilder& builder, const Path& path,
                                   const std::vector<Path>& own, const std::vector<Path>& others,
                                   const std::vector<Answer>& chosen);

}  // namespace metaldoctor
