#pragma once
// Which program a command line really starts. A script is its interpreter, and `env` is the program
// behind it: dyld's variables do not survive the programs of macOS in between, so they are left
// out.
#include <string>
#include <vector>

#include "shim/inject/file_system.h"
#include "tables/tables.h"

namespace metaldoctor {

struct ResolvedCommand {
  std::string program;                   ///< what is started
  std::string real_path;                 ///< the same, absolute and without links: what dyld sees
  std::vector<std::string> arguments;    ///< without the program's name
  std::string name;                      ///< argv[0]
  std::vector<std::string> assignments;  ///< "NAME=value" that an env in between would have made
  std::vector<std::string> steps;        ///< one line each thing that was left out
  /// What to do about a program in between that could not be left out; empty = none.
  std::vector<std::string> advice;
};

/// `command` is not empty. `search_path` is PATH: names without a slash are looked up in it.
Result<ResolvedCommand> resolve_command(const Tables& tables, FileSystem& files,
                                        const std::vector<std::string>& command,
                                        const std::string& search_path);

}  // namespace metaldoctor
