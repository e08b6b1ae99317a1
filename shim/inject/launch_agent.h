#pragma once
// A launch agent of this user whose one job gets the library. Never the login session's variables:
// `launchctl setenv` would give them to every program (launchd.plist(5), launchctl(1)).
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shim/inject/change_set.h"
#include "shim/inject/file_system.h"

namespace metaldoctor {

struct LaunchAgent {
  std::string label;
  /// The program, absolute, and its arguments. Empty: those of the agent that is there already.
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> variables;  ///< besides the library
  std::string library;                                         ///< absolute path
  std::string log;     ///< standard output and error; empty = as it is
  bool in_gui = true;  ///< gui/UID: needs a login; user/UID is there without
  bool run_at_load = false;
};

/// Refused (Fault::refused) are labels that are no file name and texts that a property list cannot
/// hold.
Result<void> check_launch_agent(const LaunchAgent& agent);
std::string agent_path(const std::string& home, const std::string& label);

/// The new property list. `existing` is what is there, or empty: its other keys are kept.
Result<std::string> agent_text(const LaunchAgent& agent, const std::string& existing,
                               const std::string& name);

/// The program that the agent starts: of `agent`, or of the one that is there.
Result<std::string> agent_program(const LaunchAgent& agent, const std::string& existing,
                                  const std::string& name);

/// The commands before and after the files change. A definition that is loaded already does not
/// change with its file, so the job is booted out and in again.
void add_launchctl(const LaunchAgent& agent, const std::string& path, bool exists, unsigned user,
                   ChangePlan& plan);

}  // namespace metaldoctor
