#include "tools/render/preflight.h"

#include <memory>

#include "shim/inject/bundle.h"
#include "shim/inject/resolve.h"
#include "tools/metaldoctor/context.h"
#include "tools/metaldoctor/guest_facts.h"
#include "tools/metaldoctor/mapped_file.h"
#include "tools/platform/posix_file_system.h"
#include "tools/platform/posix_process_runner.h"
#include "tools/platform/system.h"
#include "tools/render/diagnosis.h"

namespace metaldoctor {
namespace {

struct PreflightInput {
  std::string file;
  std::string at;
  std::string arch;
  std::string library;
  bool arm64e = false;
  GuestFacts guest;
};

/// The architectures of the library that would be injected.
Result<void> add_library(const PreflightInput& input, PreflightWorld& world) {
  if (input.arm64e) world.library_archs.push_back("arm64e");
  if (input.library.empty()) return {};
  PosixFileSystem files;
  const auto real = files.real_path(input.library);
  if (!real && real.error().code == "absent") {
    world.library_present = false;
    return {};
  }
  const auto mapped = MappedFile::open(input.library);
  if (!mapped) return tl::unexpected(mapped.error());
  const auto file = MachOFile::read(mapped->bytes(), input.library);
  if (!file) return tl::unexpected(file.error());
  world.library_archs.clear();
  for (const Slice& slice : file->slices()) world.library_archs.push_back(slice.arch);
  return {};
}

Result<PreflightReport> examine(const Tables& tables, const PreflightInput& input) {
  PosixFileSystem files;
  PosixProcessRunner runner;
  auto world = input.guest.world(runner);
  if (!world) return tl::unexpected(world.error());
  if (auto done = add_library(input, *world); !done) return tl::unexpected(done.error());
  auto program = program_of(files, input.file);
  if (!program) return tl::unexpected(program.error());
  const auto command = resolve_command(tables, files, {*program}, system_environment().search_path);
  if (!command) return tl::unexpected(command.error());
  PreflightReport report;
  report.file = input.file;
  report.steps = command->steps;
  report.advice = command->advice;
  // A script's interpreter has a place of its own; --at is where the file itself lies.
  report.path = !input.at.empty() && command->steps.empty() ? input.at : command->real_path;
  world->path = report.path;
  const auto info = files.info(command->real_path);
  world->set_id = info && (info->mode & 06000) != 0;
  const auto mapped = MappedFile::open(command->real_path);
  if (!mapped) return tl::unexpected(mapped.error());
  const std::string& name = command->steps.empty() ? input.file : command->real_path;
  auto found = preflight_program(tables, mapped->bytes(), name, input.arch, *world);
  if (!found) return tl::unexpected(found.error());
  report.program = std::move(*found);
  return report;
}

ExitStatus preflight_command(Context& context, const PreflightInput& input) {
  auto tables = context.tables();
  if (!tables) return context.report(tables.error());
  const auto report = examine(**tables, input);
  if (!report) return context.report(report.error());
  const ExitStatus status =
      report->program.decision().fails() ? ExitStatus::refused : ExitStatus::done;
  return context.write(context.options.format == "json"
                           ? json_text(preflight_json(**tables, *report))
                           : preflight_text(**tables, *report, context.style()),
                       status);
}

}  // namespace

Action define_preflight(CLI::App& app) {
  auto input = std::make_shared<PreflightInput>();
  app.add_option("file", input->file, "a program, a script, or an .app bundle")
      ->type_name("FILE|BUNDLE")
      ->required();
  app.add_option("--at", input->at, "where the program lies in the guest, when FILE is a copy")
      ->type_name("PATH");
  app.add_option("--arch", input->arch, "the slice that is started: arm64, arm64e, x86_64");
  app.add_option("--library", input->library,
                 "the library to inject; the default is what emit makes")
      ->type_name("DYLIB");
  app.add_flag("--arm64e", input->arm64e, "the library has the experimental arm64e slice");
  input->guest.add_options(app);
  add_format_option(app, {"text", "json"});
  return [input](Context& context) { return preflight_command(context, *input); };
}

}  // namespace metaldoctor
