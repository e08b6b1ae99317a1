#pragma once
#include <optional>
#include <string>
#include <vector>

#include "shim/world.h"

namespace metaldoctor {

/// Boolean answers that are varied exhaustively; a predicate with more is judged by Kleene logic,
/// which never calls an openable path closed.
inline constexpr std::size_t kMaxVariedAnswers = 12;

/// The facts that keep a path closed whatever the overridable answers are: the smallest part, in
/// atom order, of what is known in the guest. None where some assignment could open it.
std::optional<std::vector<Atom>> closing_facts(const Situation& situation,
                                               const Predicate& predicate);

/// The smallest set of boolean answers that the host denies and that would open the path on top of
/// the host's. None where there is no such set.
std::optional<std::vector<Atom>> denied_openers(const Situation& situation,
                                                const Predicate& predicate);

/// Of the atoms that are unknown in `world`, those that could settle the predicate alone; all of
/// them where none can.
std::vector<Atom> deciding_unknowns(const Predicate& predicate, const World& world);

}  // namespace metaldoctor
