#pragma once
#include <string>

#include "shim/profile.h"

namespace metaldoctor {

/// A profile document from a file, or from standard input for "-".
Result<Profile> read_profile_file(const Tables& tables, const std::string& path);

}  // namespace metaldoctor
