#include <memory>

#include "shim/inject/resolve.h"
#include "tools/metaldoctor/auto_profile.h"
#include "tools/metaldoctor/injected_run.h"
#include "tools/metaldoctor/profile_input.h"
#include "tools/platform/posix_file_system.h"
#include "tools/platform/system.h"

namespace metaldoctor {
namespace {

struct RunInput {
  InjectedRun run;
  AutoProfile automatic;
  std::string profile;
  std::string scope;
  bool use_auto = false;
};

Result<Profile> profile_of(Context& context, const Tables& tables, const RunInput& input) {
  if (!input.use_auto) return read_profile_file(tables, input.profile);
  PosixFileSystem files;
  const auto resolved =
      resolve_command(tables, files, context.command, system_environment().search_path);
  if (!resolved) return tl::unexpected(resolved.error());
  return input.automatic.make(context, tables, resolved->real_path);
}

ExitStatus run_command(Context& context, const RunInput& input) {
  if (auto given = check_command(context, "run"); !given) return context.report(given.error());
  if (input.use_auto == !input.profile.empty()) {
    return context.report({Fault::usage, "no-profile", "run",
                           "exactly one of --profile FILE and --auto is needed",
                           "`metaldoctor recommend -o FILE` writes a profile"});
  }
  auto tables = context.tables();
  if (!tables) return context.report(tables.error());
  const auto profile = profile_of(context, **tables, input);
  if (!profile) return context.report(profile.error());
  if (profile->changes.empty()) {
    context.note("metaldoctor run: the profile changes no answer: the program runs as it is");
  }
  EmitOptions options;
  if (!input.scope.empty()) {
    options.scope = input.scope == "tree" ? Profile::Scope::tree : Profile::Scope::process;
  }
  const auto library = emit(**tables, *profile, options);
  if (!library) return context.report(library.error());
  return input.run.run(context, **tables, *library);
}

}  // namespace

Action define_run(CLI::App& app) {
  auto input = std::make_shared<RunInput>();
  input->run.add_options(app);
  app.remove_option(app.get_option("--os"));  // one --os, for the answers and for preflight
  app.add_option("--profile", input->profile, "what `recommend -o` wrote")->type_name("FILE");
  app.add_flag("--auto", input->use_auto, "scan, audit and recommend first");
  app.add_option("--scope", input->scope,
                 "process, or tree: its children too; default: as the profile says")
      ->check(CLI::IsMember({"process", "tree"}));
  app.add_flag("--require-shim", input->run.require_shim,
               "a program that runs without the library is an error (status 4)");
  input->automatic.add_options(app);
  return [input](Context& context) {
    RunInput whole = *input;
    whole.run.guest.os = whole.automatic.device.os;
    return run_command(context, whole);
  };
}

}  // namespace metaldoctor
