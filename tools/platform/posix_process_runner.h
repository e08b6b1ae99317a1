#pragma once
#include "shim/inject/process_runner.h"

namespace metaldoctor {

/// posix_spawn: nothing of this process is copied, and no code of ours runs in the child.
class PosixProcessRunner final : public ProcessRunner {
 public:
  Result<CapturedRun> capture(const ChildCommand& command, const std::string& input,
                              const CaptureLimits& limits) override;
  Result<ChildEnd> attend(const ChildCommand& command) override;
};

}  // namespace metaldoctor
