#pragma once
// What happened to an injected process, from how it ended and from its journal. A run without the
// library must not look like one with it.
#include <optional>
#include <string>
#include <vector>

#include "scanners/device/wire_reader.h"
#include "shim/inject/preflight.h"
#include "shim/inject/process_runner.h"

namespace metaldoctor {

struct RunReport {
  enum class Outcome {
    took_hold,       ///< a device class has the hooks
    no_device,       ///< loaded, but the process started no Metal device
    refused_itself,  ///< loaded, but the hooks could not be installed, and none was
    malformed,       ///< loaded, but its configuration could not be read
    not_loaded,      ///< no record of the process
    no_journal,      ///< the journal cannot be read
  } outcome = Outcome::not_loaded;
  std::string reason;              ///< one sentence; empty when it took hold
  std::vector<std::string> hints;  ///< what to do
  ChildEnd end;
  std::vector<std::string> command;
  std::optional<ProgramPreflight> preflight;
  std::string preflight_problem;  ///< why there is none
  Journal journal;                ///< of this run only

  bool took_hold() const { return outcome == Outcome::took_hold; }
  /// The process that was started, if it has a record.
  const JournalProcess* main_process() const;
};

std::string_view to_string(RunReport::Outcome outcome);

/// Fills outcome, reason and hints from the rest. `tree`: a child that took hold counts.
void judge(RunReport& report, bool tree);

}  // namespace metaldoctor
