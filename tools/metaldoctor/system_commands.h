#pragma once
#include <string>
#include <vector>

#include "shim/inject/process_runner.h"
#include "shim/inject/receipt.h"
#include "tools/metaldoctor/context.h"

namespace metaldoctor {

/// Runs launchctl, plutil and defaults, on macOS only; elsewhere says that they were not run. The
/// first that fails and may not is the error.
Result<void> run_system_commands(Context& context, ProcessRunner& runner,
                                 const std::vector<ReceiptCommand>& commands);

/// The directory that receipts lie in.
Result<std::string> receipt_directory();

}  // namespace metaldoctor
