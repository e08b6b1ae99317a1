#include <fmt/core.h>

#include <memory>

#include "shim/asked.h"
#include "shim/recommend.h"
#include "tools/metaldoctor/binary_input.h"
#include "tools/metaldoctor/context.h"
#include "tools/metaldoctor/device_input.h"
#include "tools/metaldoctor/files.h"
#include "tools/render/diagnosis.h"
#include "tools/render/recommendation.h"

namespace metaldoctor {
namespace {

struct RecommendInput {
  DeviceInput device;
  std::vector<std::string> files;
  std::string arch;
  std::string journal;
  std::vector<std::string> apps;
  std::vector<std::string> want;
  std::vector<std::string> set;
  std::vector<std::string> accepted;
  std::vector<std::string> environment;
  std::string callers = "all";
  std::string scope = "process";
};

Result<RecommendOptions> options_of(const RecommendInput& input, const Tables& tables) {
  RecommendOptions options;
  auto diagnose = input.device.diagnose_options(tables);
  if (!diagnose) return tl::unexpected(diagnose.error());
  options.diagnose = *diagnose;
  options.want = input.want;
  options.accepted_hazards = input.accepted;
  options.callers = input.callers == "app" ? Profile::Callers::app : Profile::Callers::all;
  options.scope = input.scope == "tree" ? Profile::Scope::tree : Profile::Scope::process;
  for (const std::string& text : input.set) {
    auto answer = parse_answer(text);
    if (!answer) return tl::unexpected(answer.error());
    options.set.push_back(std::move(*answer));
  }
  for (const std::string& text : input.environment) {
    const std::size_t equals = text.find('=');
    options.environment.emplace_back(text.substr(0, equals), Value(true));
  }
  return options;
}

Result<std::vector<Path>> paths_of_all(const RecommendInput& input, const Tables& tables) {
  std::vector<Path> paths;
  for (const std::string& spec : input.apps) {
    auto found = find_app(tables, spec);
    if (!found) return tl::unexpected(found.error());
    std::vector<Path> more = paths_of(*found->first, *found->second);
    std::ranges::move(more, std::back_inserter(paths));
  }
  for (const std::string& file : input.files) {
    auto images = audit_file(tables, file, input.arch);
    if (!images) return tl::unexpected(images.error());
    for (const AuditedImage& image : *images) {
      std::ranges::move(paths_of(image.findings, image.programs), std::back_inserter(paths));
    }
  }
  return paths;
}

/// A misspelt variable would change nothing, silently.
void note_unasked_environment(const RecommendOptions& options, const std::vector<Path>& paths,
                              Context& context) {
  for (const auto& [name, value] : options.environment) {
    const bool asked = std::ranges::any_of(paths, [&, &name = name](const Path& path) {
      return path.predicate.atoms().contains({AtomKind::env, {}, name});
    });
    if (asked) continue;
    context.note(fmt::format(
        "metaldoctor recommend: --env {}: no path of these programs asks for it", name));
  }
}

/// With --journal: only the paths that the process really came to.
Result<void> keep_asked(const RecommendInput& input, const Tables& tables, std::vector<Path>& paths,
                        Context& context) {
  if (input.journal.empty()) return {};
  const auto text = read_file(input.journal);
  if (!text) return tl::unexpected(text.error());
  const auto journal = read_journal(tables, *text, input.journal);
  if (!journal) return tl::unexpected(journal.error());
  const auto asked = asked_in(*journal, input.journal);
  if (!asked) return tl::unexpected(asked.error());
  for (const std::string& id : remove_unasked(paths, *asked)) {
    context.note(fmt::format(
        "metaldoctor recommend: {} is left out: the process never asked for it [measured]", id));
  }
  return {};
}

ExitStatus recommend_command(Context& context, const RecommendInput& input) {
  if (input.apps.empty() && input.files.empty()) {
    return context.report({Fault::usage, "no-program", "recommend", "no program given",
                           "FILE..., or --app ID[@RANGE]; metaldoctor tables apps lists those"});
  }
  auto tables = context.tables();
  if (!tables) return context.report(tables.error());
  auto options = options_of(input, **tables);
  if (!options) return context.report(options.error());
  auto paths = paths_of_all(input, **tables);
  if (!paths) return context.report(paths.error());
  note_unasked_environment(*options, *paths, context);
  if (auto kept = keep_asked(input, **tables, *paths, context); !kept) {
    return context.report(kept.error());
  }

  DeviceInput device = input.device;
  if (!device.given()) {
    context.note(
        "metaldoctor recommend: no --capture or --log: taking the built-in capture "
        "\"paravirtual\", what stock guests are known to answer");
    device.capture = "paravirtual";
  }
  auto guest = device.read(**tables, context);
  if (!guest) return context.report(guest.error());
  auto result = recommend(**tables, *guest, *paths, *options);
  if (!result) return context.report(result.error());

  ExitStatus status = ExitStatus::done;
  for (const Diagnostic& refusal : result->refusals) {
    status = worse(status, context.report(refusal));
  }
  status =
      worse(status, context.print(context.options.format == "json"
                                      ? json_text(recommendation_json(*result))
                                      : recommendation_text(**tables, *result, context.style()),
                                  ExitStatus::done));
  if (status != ExitStatus::done || context.options.output.empty()) return status;
  return context.write(json_text(to_json(result->profile)), status);
}

}  // namespace

Action define_recommend(CLI::App& app) {
  auto input = std::make_shared<RecommendInput>();
  app.get_option("--output")
      ->description("write the profile to FILE; the report still goes to standard output");
  app.add_option("files", input->files, "binaries to audit for their paths")->type_name("FILE");
  app.add_option("--arch", input->arch, "of the binaries, only this slice");
  app.add_option("--app", input->apps, "program and release: ggml-metal, llama.cpp@b10167")
      ->type_name("ID[@RANGE]")
      ->allow_extra_args(false);  // one value each: what follows is a file
  input->device.add_options(app);
  app.add_option("--journal", input->journal,
                 "what `trace --journal` wrote: leave out paths that were never asked for")
      ->type_name("FILE");
  app.add_option("--want", input->want, "open only these paths")
      ->type_name("PATH")
      ->allow_extra_args(false);
  app.add_option("--set", input->set, "insist on an answer: supportsFamily:1009=yes")
      ->type_name("QUERY[:ARG]=VALUE")
      ->allow_extra_args(false);
  app.add_option("--accept-hazard", input->accepted, "take this risk knowingly")
      ->type_name("ID")
      ->allow_extra_args(false);
  app.add_option("--env", input->environment, "a variable that the program will have set")
      ->type_name("NAME")
      ->allow_extra_args(false);
  app.add_option("--callers", input->callers, "who gets the changed answers: all, or app only")
      ->check(CLI::IsMember({"all", "app"}))
      ->capture_default_str();
  app.add_option("--scope", input->scope, "process, or tree: its children too")
      ->check(CLI::IsMember({"process", "tree"}))
      ->capture_default_str();
  add_format_option(app, {"text", "json"});
  return [input](Context& context) { return recommend_command(context, *input); };
}

}  // namespace metaldoctor
