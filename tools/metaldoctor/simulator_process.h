#pragma once
#include <string>
#include <string_view>

#include "shim/behaviour.h"
#include "shim/inject/process_runner.h"

namespace metaldoctor {

/// metaldoctor-sim: `given` if not empty, else beside this program, else in PATH. An error says
/// where it was looked for.
Result<std::string> find_simulator(const std::string& given);

/// The code of an error of the program itself, as it refuses a library that cannot be loaded.
inline constexpr std::string_view kSimulatorFailed = "simulator-failed";

/// Each request is one run of that program: request on its standard input, result on its output.
Simulator simulator_process(ProcessRunner& runner, const std::string& program);

}  // namespace metaldoctor
