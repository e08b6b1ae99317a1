#pragma once
#include <string>
#include <vector>

#include "tables/diagnostic.h"

namespace metaldoctor {

/// A shell script that starts one program with the library. The variable is set inside the script:
/// one that the shell was started with would not survive it where System Integrity Protection is
/// on. Any bytes but NUL may stand in the command. `assignments` are "NAME=value"; refused
/// (Fault::refused) are names that a shell cannot export.
Result<std::string> wrapper_text(const std::vector<std::string>& command,
                                 const std::vector<std::string>& assignments,
                                 const std::string& library);

/// Whether a file is such a script: only those are replaced.
bool is_wrapper(const std::string& text);

/// `text` as one word of a POSIX shell.
std::string shell_quoted(const std::string& text);

}  // namespace metaldoctor
