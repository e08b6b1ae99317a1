#pragma once
#include <string>

#include "shim/inject/process_runner.h"

namespace metaldoctor {

/// metal-probe beside this program, where it can run: on macOS. Empty elsewhere.
std::string own_probe();

/// What the probe at `path` prints. A probe that fails, or that a signal ends, is an error: half of
/// its answers would look like a device that lacks the rest.
Result<std::string> run_probe(ProcessRunner& runner, const std::string& path);

}  // namespace metaldoctor
