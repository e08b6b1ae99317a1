#pragma once
#include <vector>

#include "shim/choices.h"

namespace metaldoctor {

/// Why every answer that could come to mind was not changed: the families above the guest's
/// highest of each line, then every other question that the programs ask.
std::vector<LeftAlone> left_alone(const ProblemBuilder& builder, const std::vector<Path>& paths,
                                  const std::vector<ProfileChange>& changes);

}  // namespace metaldoctor
