#pragma once
#include "shim/inject/plist.h"

namespace metaldoctor {

/// What is wrong with the size or the shape of a property list; empty = it may be parsed.
std::string exceeds_bounds(std::string_view bytes, const PlistLimits& limits);

inline constexpr std::string_view kBinaryPlist = "bplist00";

}  // namespace metaldoctor
