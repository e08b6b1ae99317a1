#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "scanners/macho/sha256.h"
#include "shim/emit.h"
#include "shim/inject/launch_agent.h"
#include "shim/inject/plist.h"
#include "shim/inject/resolve.h"
#include "shim/inject/wrapper.h"
#include "tools/metaldoctor/context.h"
#include "tools/metaldoctor/guest_facts.h"
#include "tools/metaldoctor/mapped_file.h"
#include "tools/metaldoctor/profile_input.h"
#include "tools/metaldoctor/system_commands.h"
#include "tools/platform/posix_file_system.h"
#include "tools/platform/posix_process_runner.h"
#include "tools/platform/system.h"
#include "tools/render/diagnosis.h"
#include "tools/render/preflight.h"
#include "tools/render/receipt.h"

namespace metaldoctor {
namespace {

struct ApplyInput {
  std::string label, wrapper, profile, scope, log;
  std::vector<std::string> variables;
  bool user_domain = false, run_at_load = false, dry_run = false, no_load = false, force = false;
  GuestFacts guest;
};

/// One application, from the options to the receipt.
class Application {
 public:
  Application(Context& context, const Tables& tables, const ApplyInput& input, std::string receipts)
      : context_(context),
        tables_(tables),
        input_(input),
        environment_(system_environment()),
        changes_(files_, clock_, std::move(receipts)) {}

  ExitStatus run() {
    auto made = input_.label.empty() ? wrapper_plan() : agent_plan();
    if (!made) return context_.report(made.error());
    std::vector<Receipt> taken;
    auto receipt = input_.dry_run ? changes_.plan(*made) : changes_.apply(*made, &taken);
    if (!receipt) return context_.report(receipt.error());
    for (const Receipt& each : taken) note(each.id + " was taken back first");
    const ExitStatus status = say(*receipt);
    if (input_.dry_run || input_.no_load || status != ExitStatus::done) return status;
    if (auto ran = run_system_commands(context_, runner_, receipt->after); !ran) {
      context_.note(
          "metaldoctor apply: the files are in place; `metaldoctor rollback` removes them");
      return context_.report(ran.error());
    }
    return status;
  }

 private:
  ExitStatus say(const Receipt& receipt) {
    const std::string path = input_.dry_run ? std::string() : changes_.path_of(receipt);
    return context_.write(context_.options.format == "json"
                              ? json_text(to_json(receipt))
                              : receipt_text(receipt, path, context_.style()),
                          ExitStatus::done);
  }

  /// The file as it was before metaldoctor: a plan is made and checked before anything changes.
  Result<FileChange> original(const std::string& action, const std::string& subject,
                              const std::string& path) {
    const auto applied = changes_.newest_applied(action, subject);
    if (!applied) return tl::unexpected(applied.error());
    if (*applied && input_.dry_run) note((*applied)->id + " would be taken back first");
    auto found = changes_.original(action, subject, path, PlistLimits().bytes);
    if (!found) return tl::unexpected(found.error());
    return found->value_or(FileChange{path, "", 0644});
  }

  /// The library in a directory of this subject's own: rolling back one must not take it from
  /// another.
  Result<FileChange> library(const std::string& subject) {
    const auto profile = read_profile_file(tables_, input_.profile);
    if (!profile) return tl::unexpected(profile.error());
    EmitOptions options;
    options.name = std::filesystem::path(input_.profile).stem().string();
    if (!input_.scope.empty()) {
      options.scope = input_.scope == "tree" ? Profile::Scope::tree : Profile::Scope::process;
    }
    const auto emitted = emit(tables_, *profile, options);
    if (!emitted) return tl::unexpected(emitted.error());
    const std::string path = fmt::format("{}/libraries/{}/{}", environment_.state_directory,
                                         subject, emitted->file_name);
    if (path.find(':') != std::string::npos) {
      return fail(Fault::refused, "library-path", path,
                  "dyld splits DYLD_INSERT_LIBRARIES at ':', so the path must not hold one");
    }
    return FileChange{path, std::string(emitted->bytes.begin(), emitted->bytes.end()), 0644};
  }

  /// The program behind scripts and env, checked. Nothing is applied to one that would fail.
  Result<ResolvedCommand> checked(const std::vector<std::string>& command) {
    auto resolved = resolve_command(tables_, files_, command, environment_.search_path);
    if (!resolved) return resolved;
    for (const std::string& step : resolved->steps) note(step);
    for (const std::string& advice : resolved->advice) note(advice);
    const auto mapped = MappedFile::open(resolved->real_path);
    if (!mapped) return tl::unexpected(mapped.error());
    if (container_of(mapped->bytes()) == Container::unknown) {
      note(resolved->real_path + " is no Mach-O file: it could not be checked");
      return resolved;
    }
    auto world = input_.guest.world(runner_);
    if (!world) return tl::unexpected(world.error());
    world->path = resolved->real_path;
    const auto info = files_.info(resolved->real_path);
    world->set_id = info && (info->mode & 06000) != 0;
    const auto found = preflight_program(tables_, mapped->bytes(), resolved->real_path, "", *world);
    if (!found) return tl::unexpected(found.error());
    const Preflight& decision = found->decision();
    if (decision.fails() && !input_.force) {
      return fail(Fault::refused, "preflight-" + decision.row->id, resolved->real_path,
                  fmt::format("{}: {}", verdict_words(decision.row->verdict), decision.row->reason),
                  decision.row->todo);
    }
    if (!decision.works()) {
      note(fmt::format("{}: {}", verdict_words(decision.row->verdict), decision.row->reason));
    }
    return resolved;
  }

  Result<ChangePlan> agent_plan() {
    LaunchAgent agent;
    agent.label = input_.label;
    agent.log = input_.log;
    agent.in_gui = !input_.user_domain;
    agent.run_at_load = input_.run_at_load;
    for (const std::string& each : input_.variables) {
      const std::size_t equals = std::min(each.find('='), each.size());
      agent.variables.emplace_back(each.substr(0, equals),
                                   each.substr(std::min(equals + 1, each.size())));
    }
    if (auto fits = check_launch_agent(agent); !fits) return tl::unexpected(fits.error());
    const std::string path = agent_path(environment_.home, agent.label);
    const auto file = original("launch-agent", agent.label, path);
    if (!file) return tl::unexpected(file.error());
    const std::string& existing = file->bytes;
    if (auto done = choose_program(agent, existing, path); !done) {
      return tl::unexpected(done.error());
    }
    if (auto fits = check_launch_agent(agent); !fits) return tl::unexpected(fits.error());
    auto dylib = library(agent.label);
    if (!dylib) return tl::unexpected(dylib.error());
    agent.library = dylib->path;
    auto text = agent_text(agent, existing, path);
    if (!text) return tl::unexpected(text.error());
    ChangePlan plan;
    plan.action = "launch-agent";
    plan.subject = agent.label;
    plan.files = {*std::move(dylib), {path, *std::move(text), file->mode}};
    add_launchctl(agent, path, !existing.empty(), environment_.user, plan);
    return plan;
  }

  Result<void> choose_program(LaunchAgent& agent, const std::string& existing,
                              const std::string& path) {
    agent.command = context_.command;
    const auto program = agent_program(agent, existing, path);
    if (!program) return tl::unexpected(program.error());
    auto resolved = checked(context_.command.empty() ? std::vector{*program} : context_.command);
    if (!resolved) return tl::unexpected(resolved.error());
    if (context_.command.empty()) return {};
    agent.command = {absolute(resolved->program)};
    agent.command.insert(agent.command.end(), resolved->arguments.begin(),
                         resolved->arguments.end());
    for (const std::string& each : resolved->assignments) {
      agent.variables.emplace_back(each.substr(0, each.find('=')), each.substr(each.find('=') + 1));
    }
    return {};
  }

  Result<ChangePlan> wrapper_plan() {
    const std::string path = absolute(input_.wrapper);
    if (auto given = wrapper_options(); !given) return tl::unexpected(given.error());
    const auto existing = original("wrapper", path, path);
    if (!existing) return tl::unexpected(existing.error());
    if (!existing->bytes.empty() && !is_wrapper(existing->bytes)) {
      return fail(Fault::refused, "not-a-wrapper", path,
                  "is a file that metaldoctor did not make; it is not replaced",
                  "choose another name for the wrapper");
    }
    const auto resolved = checked(context_.command);
    if (!resolved) return tl::unexpected(resolved.error());
    const std::string hash =
        hex(sha256({reinterpret_cast<const std::uint8_t*>(path.data()), path.size()}));
    auto dylib = library("wrapper-" + hash.substr(0, 12));
    if (!dylib) return tl::unexpected(dylib.error());
    std::vector<std::string> command{absolute(resolved->program)};
    command.insert(command.end(), resolved->arguments.begin(), resolved->arguments.end());
    std::vector<std::string> assignments = resolved->assignments;
    assignments.insert(assignments.end(), input_.variables.begin(), input_.variables.end());
    auto text = wrapper_text(command, assignments, dylib->path);
    if (!text) return tl::unexpected(text.error());
    ChangePlan plan;
    plan.action = "wrapper";
    plan.subject = path;
    plan.files = {*std::move(dylib), {path, *std::move(text), 0755}};
    return plan;
  }

  Result<void> wrapper_options() const {
    if (context_.command.empty()) {
      return fail(Fault::usage, "no-program", "apply --wrapper", "no program given",
                  "metaldoctor apply --wrapper PATH --profile FILE -- PROGRAM [ARGUMENT...]");
    }
    if (input_.log.empty() && !input_.run_at_load && !input_.user_domain) return {};
    return fail(Fault::usage, "options", "apply --wrapper",
                "--log, --run-at-load and --user-domain belong to --launch-agent");
  }

  static std::string absolute(const std::string& path) {
    std::error_code error;
    const auto full = std::filesystem::absolute(path, error);
    return error ? path : full.lexically_normal().string();
  }

  void note(std::string_view text) {
    context_.note(fmt::format("metaldoctor apply: {}", printable(text)));
  }

  Context& context_;
  const Tables& tables_;
  const ApplyInput& input_;
  SystemEnvironment environment_;
  PosixFileSystem files_;
  PosixProcessRunner runner_;
  SystemClock clock_;
  ChangeSet changes_;
};

ExitStatus apply_command(Context& context, const ApplyInput& input) {
  if (input.label.empty() == input.wrapper.empty() || input.profile.empty()) {
    return context.report(
        {Fault::usage, "options", "apply",
         "--profile FILE and exactly one of --launch-agent LABEL and --wrapper PATH are needed",
         "`metaldoctor recommend -o FILE` writes a profile"});
  }
  auto tables = context.tables();
  if (!tables) return context.report(tables.error());
  const auto receipts = receipt_directory();
  if (!receipts) return context.report(receipts.error());
  return Application(context, **tables, input, *receipts).run();
}

}  // namespace

Action define_apply(CLI::App& app) {
  auto input = std::make_shared<ApplyInput>();
  app.add_option("--launch-agent", input->label,
                 "the agent in ~/Library/LaunchAgents: edited if it is there, else made")
      ->type_name("LABEL");
  app.add_option("--wrapper", input->wrapper, "a script that starts the program with the library")
      ->type_name("PATH");
  app.add_option("--profile", input->profile, "what `recommend -o` wrote")->type_name("FILE");
  app.add_option("--scope", input->scope,
                 "process, or tree: its children too; default: as the profile says")
      ->check(CLI::IsMember({"process", "tree"}));
  app.add_option("--env", input->variables, "a variable of this workload")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  app.add_option("--log", input->log, "the agent's standard output and error, absolute")
      ->type_name("FILE");
  app.add_flag("--user-domain", input->user_domain,
               "the domain user/UID, which is there without a login; the default is gui/UID");
  app.add_flag("--run-at-load", input->run_at_load, "start the agent at every login");
  app.add_flag("--dry-run", input->dry_run, "show the plan and write nothing");
  app.add_flag("--no-load", input->no_load, "write the files and only show the launchctl commands");
  app.add_flag("--force", input->force, "apply although preflight says that it would fail");
  input->guest.add_options(app);
  app.get_option("--output")->description("write the receipt or the plan to FILE");
  add_format_option(app, {"text", "json"});
  return [input](Context& context) { return apply_command(context, *input); };
}

}  // namespace metaldoctor
