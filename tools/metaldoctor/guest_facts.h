#pragma once
#include <CLI/CLI.hpp>
#include <string>

#include "shim/inject/preflight.h"
#include "shim/inject/process_runner.h"

namespace metaldoctor {

/// The options that say what the guest is like: --sip and --os. On a Mac what is not given is asked
/// of the system itself.
struct GuestFacts {
  std::string sip = "auto";
  std::string os;

  void add_options(CLI::App& app);
  Result<PreflightWorld> world(ProcessRunner& runner) const;
};

}  // namespace metaldoctor
