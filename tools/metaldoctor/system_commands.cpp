#include "tools/metaldoctor/system_commands.h"

#include <fmt/format.h>

#include "tools/platform/system.h"
#include "tools/render/receipt.h"

namespace metaldoctor {

Result<void> run_system_commands(Context& context, ProcessRunner& runner,
                                 const std::vector<ReceiptCommand>& commands) {
  if (!kOnMacos && !commands.empty()) {
    context.note(fmt::format("metaldoctor: this is not macOS: {} command(s) shown, none run",
                             commands.size()));
    return {};
  }
  for (const ReceiptCommand& each : commands) {
    ChildCommand command;
    command.program = each.argv[0];
    command.arguments.assign(each.argv.begin() + 1, each.argv.end());
    const auto run = runner.capture(command, "", {.output = std::size_t{1} << 20});
    if (each.may_fail) continue;
    if (!run) return tl::unexpected(run.error());
    if (run->end.status() == 0) continue;
    return fail(Fault::input, "command-failed", command_line(each.argv),
                fmt::format("ended with status {}: {}", run->end.status(),
                            run->err.empty() ? run->out : run->err));
  }
  return {};
}

Result<std::string> receipt_directory() {
  const SystemEnvironment environment = system_environment();
  if (!environment.state_directory.empty()) return environment.state_directory + "/receipts";
  return fail(Fault::usage, "no-home", "HOME", "is not set: receipts have no place to be");
}

}  // namespace metaldoctor
