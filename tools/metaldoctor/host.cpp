#include <fmt/format.h>

#include <memory>

#include "shim/inject/host_preference.h"
#include "tools/metaldoctor/context.h"
#include "tools/metaldoctor/system_commands.h"
#include "tools/platform/posix_file_system.h"
#include "tools/platform/posix_process_runner.h"
#include "tools/platform/system.h"
#include "tools/render/diagnosis.h"
#include "tools/render/receipt.h"

namespace metaldoctor {
namespace {

struct HostInput {
  std::string action;
  bool dry_run = false;
};

std::string words_of(const std::optional<std::string>& value) {
  return !value ? "not set" : *value == "1" ? "on" : "off";
}

/// The preference belongs to the Mac that runs the guests.
bool is_guest(ProcessRunner& runner) {
  ChildCommand command;
  command.program = "/usr/sbin/sysctl";
  command.arguments = {"-n", "kern.hv_vmm_present"};
  const auto run = runner.capture(command, "", {.output = 4096});
  return run && run->out.starts_with("1");
}

ExitStatus show(Context& context, const std::string& value, const std::optional<Receipt>& receipt,
                const std::string& path) {
  if (context.options.format == "json") {
    return context.write(json_text(preference_json(value, receipt)), ExitStatus::done);
  }
  std::string text = preference_text(value, context.style());
  if (receipt) text += receipt_text(*receipt, path, context.style());
  return context.write(text, ExitStatus::done);
}

ExitStatus change(Context& context, ProcessRunner& runner, const HostInput& input,
                  const std::optional<std::string>& before) {
  const auto directory = receipt_directory();
  if (!directory) return context.report(directory.error());
  PosixFileSystem files;
  SystemClock clock;
  ChangeSet changes(files, clock, *directory);
  const bool wanted = input.action == "enable";
  const ChangePlan plan = preference_plan(wanted, before);
  if (input.dry_run) {
    const auto planned = changes.plan(plan);
    if (!planned) return context.report(planned.error());
    return show(context, kOnMacos ? words_of(before) : "unknown", *planned, "");
  }
  if (plan.after.empty() || (wanted && before == "1")) {
    context.note(fmt::format("metaldoctor host: it is {} already", words_of(before)));
    return show(context, words_of(before), std::nullopt, "");
  }
  const auto receipt = changes.apply(plan);
  if (!receipt) return context.report(receipt.error());
  if (auto ran = run_system_commands(context, runner, receipt->after); !ran) {
    return context.report(ran.error());
  }
  context.note("metaldoctor host: stop every guest and start it again for this to count");
  return show(context, wanted ? "on" : "not set", *receipt, changes.path_of(*receipt));
}

ExitStatus host_command(Context& context, const HostInput& input) {
  PosixProcessRunner runner;
  const bool changing = input.action != "status";
  if (!kOnMacos) {
    if (!changing) return show(context, "unknown", std::nullopt, "");
    if (input.dry_run) return change(context, runner, input, std::nullopt);
    return context.report({Fault::refused, "not-macos", "host " + input.action,
                           "this is not macOS: there is no such preference here",
                           "run it on the Mac that runs the guests; --dry-run shows the commands"});
  }
  if (changing && is_guest(runner)) {
    return context.report({Fault::refused, "in-a-guest", "host " + input.action,
                           "this Mac is a guest: the preference belongs to the host",
                           "run it on the Mac that runs this guest"});
  }
  const auto before = read_preference(runner);
  if (!before) return context.report(before.error());
  return changing ? change(context, runner, input, *before)
                  : show(context, words_of(*before), std::nullopt, "");
}

}  // namespace

Action define_host(CLI::App& app) {
  auto input = std::make_shared<HostInput>();
  app.add_option("action", input->action, "status, enable or disable")
      ->check(CLI::IsMember({"status", "enable", "disable"}))
      ->required();
  app.add_flag("--dry-run", input->dry_run, "show the commands and run none");
  add_format_option(app, {"text", "json"});
  return [input](Context& context) { return host_command(context, *input); };
}

}  // namespace metaldoctor
