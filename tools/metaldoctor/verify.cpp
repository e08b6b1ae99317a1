#include "shim/verify.h"

#include <fmt/format.h>

#include <memory>

#include "shim/behaviour.h"
#include "tools/metaldoctor/context.h"
#include "tools/metaldoctor/device_input.h"
#include "tools/metaldoctor/files.h"
#include "tools/metaldoctor/profile_input.h"
#include "tools/metaldoctor/simulator_process.h"
#include "tools/platform/posix_process_runner.h"
#include "tools/render/diagnosis.h"
#include "tools/render/library.h"

namespace metaldoctor {
namespace {

struct VerifyInput {
  std::string library, profile, capture, simulator;
  std::vector<std::string> environment;
  bool static_only = false, flips = false;
};

/// A library to inject has some hundred kilobytes; whatever is larger is none.
constexpr std::size_t kLargestLibrary = std::size_t{16} << 20;

Result<BehaviourOptions> options_of(const VerifyInput& input, const Tables& tables,
                                    Context& context) {
  BehaviourOptions options;
  options.flips = input.flips;
  if (!input.capture.empty()) {
    DeviceInput device;
    device.capture = input.capture;
    const auto capture = device.read(tables, context);
    if (!capture) return tl::unexpected(capture.error());
    options.capture = to_json(*capture);
    options.bare_metal = !capture->is_guest().value_or(true);
  }
  for (const std::string& text : input.environment) {
    const auto equals = text.find('=');
    if (equals == 0 || equals == text.npos) {
      return fail(Fault::usage, "environment", "--env " + text, "expected NAME=VALUE");
    }
    options.environment[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return options;
}

/// Executes the library, or says in the report why that was not done.
Result<void> execute(Context& context, const VerifyInput& input, const Tables& tables, Bytes bytes,
                     const BehaviourOptions& options, VerifyReport& report) {
  if (input.static_only) {
    behaviour_not_checked("left out by --static", report);
    return {};
  }
  const auto program = find_simulator(input.simulator);
  if (!program) {
    if (!input.simulator.empty()) return tl::unexpected(program.error());
    const Diagnostic& missing = program.error();
    context.note(fmt::format("metaldoctor verify: {} {}: behaviour is not checked\n  hint: {}",
                             missing.where, missing.what, missing.hint));
    behaviour_not_checked(fmt::format("{} {}", missing.where, missing.what), report);
    return {};
  }
  PosixProcessRunner runner;
  auto done = verify_behaviour(tables, bytes, options, simulator_process(runner, *program), report);
  if (done || done.error().code != kSimulatorFailed) return done;
  behaviour_not_executable(done.error().what, report);
  return {};
}

ExitStatus verify_command(Context& context, const VerifyInput& input) {
  auto tables = context.tables();
  if (!tables) return context.report(tables.error());
  std::optional<Profile> expected;
  if (!input.profile.empty()) {
    auto read = read_profile_file(**tables, input.profile);
    if (!read) return context.report(read.error());
    expected = *std::move(read);
  }
  auto options = options_of(input, **tables, context);
  if (!options) return context.report(options.error());
  options->expected = expected ? &*expected : nullptr;
  const auto file = read_file(input.library, kLargestLibrary);
  if (!file) return context.report(file.error());
  const Bytes bytes{reinterpret_cast<const std::uint8_t*>(file->data()), file->size()};
  auto report = verify_static(**tables, bytes, input.library, options->expected);
  if (!report) return context.report(report.error());
  if (auto done = execute(context, input, **tables, bytes, *options, *report); !done) {
    return context.report(done.error());
  }
  // Only who asked for less than everything is content with it.
  const auto verdict = report->verdict();
  const bool good = verdict == VerifyReport::Verdict::passed ||
                    (input.static_only && verdict == VerifyReport::Verdict::incomplete);
  return context.write(context.options.format == "json"
                           ? json_text(verification_json(*report, input.library))
                           : verification_text(**tables, *report, input.library, context.style()),
                       good ? ExitStatus::done : ExitStatus::findings);
}

}  // namespace

Action define_verify(CLI::App& app) {
  auto input = std::make_shared<VerifyInput>();
  app.add_option("library", input->library, "a library to be injected, ours or not")
      ->type_name("DYLIB")
      ->required();
  app.add_option("--profile", input->profile, "what it has to change, and nothing else")
      ->type_name("FILE");
  app.add_option("--capture", input->capture,
                 "what the simulated device answers; default: the built-in \"paravirtual\"")
      ->type_name("FILE|NAME");
  app.add_flag("--flips", input->flips,
               "which of Metal's own questions it changes, for callers all and app");
  app.add_option("--env", input->environment, "a variable of the simulated process")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  app.add_option("--simulator", input->simulator, "the program metaldoctor-sim")->type_name("PATH");
  app.add_flag("--static", input->static_only, "only what can be read from the file");
  add_format_option(app, {"text", "json"});
  return [input](Context& context) { return verify_command(context, *input); };
}

}  // namespace metaldoctor
