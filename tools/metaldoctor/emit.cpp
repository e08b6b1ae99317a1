#include "shim/emit.h"

#include <filesystem>
#include <memory>

#include "tools/metaldoctor/context.h"
#include "tools/metaldoctor/files.h"
#include "tools/metaldoctor/profile_input.h"
#include "tools/render/diagnosis.h"
#include "tools/render/library.h"

namespace metaldoctor {
namespace {

struct EmitInput {
  std::string profile;
  std::string callers, scope;
  bool observe = false, arm64e = false, allow_above_host = false;
};

EmitOptions options_of(const EmitInput& input) {
  EmitOptions options;
  options.observe = input.observe;
  options.arm64e = input.arm64e;
  options.allow_above_host = input.allow_above_host;
  if (!input.callers.empty()) {
    options.callers = input.callers == "app" ? Profile::Callers::app : Profile::Callers::all;
  }
  if (!input.scope.empty()) {
    options.scope = input.scope == "tree" ? Profile::Scope::tree : Profile::Scope::process;
  }
  if (input.profile != "-") options.name = std::filesystem::path(input.profile).stem().string();
  return options;
}

/// Where the library goes: FILE, or its own name in the directory that -o names, by default here.
Result<std::string> target_of(const std::string& output, const EmitResult& emitted) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path path = output.empty() ? fs::path(emitted.file_name) : fs::path(output);
  if (!output.empty() && fs::is_directory(path, error)) path /= emitted.file_name;
  path = fs::absolute(path, error).lexically_normal();
  if (error) return fail(Fault::input, "unwritable", output, error.message());
  if (path.string().find(':') != std::string::npos) {
    return fail(Fault::usage, "library-path", path.string(),
                "dyld splits DYLD_INSERT_LIBRARIES at ':', so the path must not hold one");
  }
  return path.string();
}

ExitStatus emit_command(Context& context, const EmitInput& input) {
  if (context.options.output == "-") {
    return context.report({Fault::usage,
                           "library-path",
                           "emit",
                           "the library is a file, it does not go to standard output",
                           {}});
  }
  if (input.profile.empty() && !input.observe) {
    return context.report({Fault::usage, "no-profile", "emit", "no profile given",
                           "--profile FILE, as `metaldoctor recommend -o FILE` writes it; or "
                           "--observe for a library that only keeps a journal"});
  }
  auto tables = context.tables();
  if (!tables) return context.report(tables.error());
  Profile profile;
  if (!input.profile.empty()) {
    auto read = read_profile_file(**tables, input.profile);
    if (!read) return context.report(read.error());
    profile = *std::move(read);
  }
  const auto emitted = emit(**tables, profile, options_of(input));
  if (!emitted) return context.report(emitted.error());
  const auto path = target_of(context.options.output, *emitted);
  if (!path) return context.report(path.error());
  const auto* bytes = reinterpret_cast<const char*>(emitted->bytes.data());
  if (auto written = write_file(*path, {bytes, emitted->bytes.size()}); !written) {
    return context.report(written.error());
  }
  return context.print(context.options.format == "json"
                           ? json_text(emitted_json(*emitted, *path))
                           : emitted_text(**tables, *emitted, *path, context.style()),
                       ExitStatus::done);
}

}  // namespace

Action define_emit(CLI::App& app) {
  auto input = std::make_shared<EmitInput>();
  app.get_option("--output")
      ->description(
          "the library; a directory takes it under a name of its own, as does the "
          "current one without -o. The report goes to standard output")
      ->type_name("FILE|DIR");
  app.add_option("--profile", input->profile, "what `recommend -o` wrote; - reads standard input")
      ->type_name("FILE");
  app.add_flag("--observe", input->observe, "change nothing, only keep the journal");
  app.add_option("--callers", input->callers,
                 "who gets the changed answers: all, or app only; default: as the profile says")
      ->check(CLI::IsMember({"all", "app"}));
  app.add_option("--scope", input->scope,
                 "process, or tree: its children too; default: as the profile says")
      ->check(CLI::IsMember({"process", "tree"}));
  app.add_flag("--arm64e", input->arm64e, "add an arm64e slice: experimental");
  app.add_flag("--allow-above-host", input->allow_above_host,
               "make it although answers lie above the host; it is marked everywhere");
  add_format_option(app, {"text", "json"});
  return [input](Context& context) { return emit_command(context, *input); };
}

}  // namespace metaldoctor
