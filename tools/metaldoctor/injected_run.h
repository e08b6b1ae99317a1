#pragma once
#include <string>
#include <vector>

#include "shim/emit.h"
#include "tools/metaldoctor/context.h"
#include "tools/metaldoctor/guest_facts.h"

namespace metaldoctor {

/// What run and trace share: one process with the library, and what its journal says.
struct InjectedRun {
  std::string arch;
  std::string journal;        ///< --journal; empty = a file of ours that is removed afterwards
  bool require_shim = false;  ///< a process without the library is an error
  bool force = false;         ///< start it although preflight says that it would be killed
  bool observing = false;
  GuestFacts guest;

  void add_options(CLI::App& app);
  /// Starts context.command with the library. The status is the child's once it started.
  ExitStatus run(Context& context, const Tables& tables, const EmitResult& library) const;
};

/// The program behind "--", or a usage error.
Result<void> check_command(const Context& context, std::string_view name);

}  // namespace metaldoctor
