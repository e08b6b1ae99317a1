#pragma once
#include <string>

#include "shim/recommend.h"

namespace metaldoctor {

/// One sentence: what the profile opens, or why there is nothing to change.
std::string summary(const Recommendation& recommendation);

}  // namespace metaldoctor
