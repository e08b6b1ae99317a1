#include "tools/metaldoctor/injected_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include "shim/inject/injection.h"
#include "shim/inject/private_directory.h"
#include "shim/inject/resolve.h"
#include "shim/inject/run_report.h"
#include "tools/metaldoctor/files.h"
#include "tools/metaldoctor/mapped_file.h"
#include "tools/platform/posix_file_system.h"
#include "tools/platform/posix_process_runner.h"
#include "tools/platform/system.h"
#include "tools/render/diagnosis.h"
#include "tools/render/preflight.h"
#include "tools/render/run_report.h"

namespace metaldoctor {
namespace {

constexpr std::size_t kLargestJournal = std::size_t{16} << 20;
constexpr std::uint32_t kMachO = 0xfeedfacf, kFat = 0xbebafeca;

bool is_macho(FileSystem& files, const std::string& path) {
  const auto start = files.read_start(path, 4);
  std::uint32_t magic = 0;
  if (!start || start->size() < 4) return false;
  std::memcpy(&magic, start->data(), 4);
  return magic == kMachO || magic == kFat;
}

/// One run, from the command line to its report.
class Session {
 public:
  Session(Context& context, const Tables& tables, const InjectedRun& options)
      : context_(context),
        tables_(tables),
        options_(options),
        environment_(system_environment()),
        name_(options.observing ? "metaldoctor trace" : "metaldoctor run") {}

  ExitStatus run(const EmitResult& library) {
    auto prepared = prepare(library);
    if (!prepared) return context_.report(prepared.error());
    note_launchers();
    const auto end = runner_.attend(*prepared);
    if (!end) {
      remove_own_journal();
      return context_.report(end.error());
    }
    report_.end = *end;
    read_own_journal(library.profile.scope == Profile::Scope::tree);
    remove_own_journal();
    say();
    if (auto written = write_document(); written != ExitStatus::done) return written;
    if (options_.require_shim && !report_.took_hold()) return ExitStatus::refused;
    return static_cast<ExitStatus>(end->status());
  }

 private:
  Result<ChildCommand> prepare(const EmitResult& library) {
    if (environment_.home.empty()) {
      return fail(Fault::usage, "no-home", "HOME", "is not set: the library has no place to be");
    }
    auto resolved = resolve_command(tables_, files_, context_.command, environment_.search_path);
    if (!resolved) return tl::unexpected(resolved.error());
    resolved_ = *std::move(resolved);
    report_.command = context_.command;
    if (auto done = preflight_target(); !done) return tl::unexpected(done.error());
    if (auto done = choose_journal(); !done) return tl::unexpected(done.error());
    const auto* bytes = reinterpret_cast<const char*>(library.bytes.data());
    const auto path = store_library(files_, environment_.cache_directory, library.file_name,
                                    {bytes, library.bytes.size()});
    if (!path) return tl::unexpected(path.error());
    ChildCommand command;
    command.program = resolved_.program;
    command.arguments = resolved_.arguments;
    command.name = resolved_.name;
    command.environment =
        injected_environment(environment_.variables, resolved_.assignments, *path, journal_);
    return command;
  }

  /// Where the verdict is certain death, the program is not started.
  Result<void> preflight_target() {
    if (!is_macho(files_, resolved_.real_path)) {
      report_.preflight_problem =
          kOnMacos ? "the program is no Mach-O file"
                   : "this is not macOS: there is no dyld here that would load the library";
      return {};
    }
    auto world = options_.guest.world(runner_);
    if (!world) return tl::unexpected(world.error());
    world->path = resolved_.real_path;
    const auto info = files_.info(resolved_.real_path);
    world->set_id = info && (info->mode & 06000) != 0;
    const auto mapped = MappedFile::open(resolved_.real_path);
    if (!mapped) return tl::unexpected(mapped.error());
    auto found =
        preflight_program(tables_, mapped->bytes(), resolved_.real_path, options_.arch, *world);
    if (!found) return tl::unexpected(found.error());
    const PreflightRow& row = *found->decision().row;
    report_.preflight = *std::move(found);
    const bool fatal = row.verdict == "killed" && !options_.force;
    if (fatal || (options_.require_shim && report_.preflight->decision().fails())) {
      return fail(Fault::refused, "preflight-" + row.id, resolved_.real_path,
                  fmt::format("{}: {}", verdict_words(row.verdict), row.reason), row.todo);
    }
    return {};
  }

  Result<void> choose_journal() {
    if (options_.journal.empty()) {
      const std::string directory = environment_.cache_directory + "/journals";
      if (auto made = make_private_directory(files_, environment_.cache_directory); !made) {
        return made;
      }
      if (auto made = make_private_directory(files_, directory); !made) return made;
      journal_ = fmt::format("{}/{}-{}", directory, clock_.seconds(), ::getpid());
    } else {
      const std::string parent = parent_directory(options_.journal);
      const auto real = files_.real_path(parent);
      if (!real) return tl::unexpected(real.error());
      journal_ = *real + '/' + file_name_of(options_.journal);
    }
    const auto info = check_journal_path(files_, journal_);
    if (!info) return tl::unexpected(info.error());
    journal_start_ = info->size;
    return {};
  }

  void note_launchers() {
    for (const std::string& step : resolved_.steps) note(step);
    for (const std::string& advice : resolved_.advice) note(advice);
    if (report_.preflight && !report_.preflight->decision().works()) {
      const PreflightRow& row = *report_.preflight->decision().row;
      note(fmt::format("{}: {} [{}]", verdict_words(row.verdict), row.reason,
                       to_string(row.provenance.evidence)));
    }
  }

  void read_own_journal(bool tree) {
    judge(report_, tree);
    const auto info = files_.info(journal_);
    if (info && !info->exists()) return;
    auto text = files_.read(journal_, kLargestJournal);
    if (text && text->size() <= journal_start_) return;
    Result<Journal> journal =
        text ? read_journal(tables_, std::string_view(*text).substr(journal_start_), journal_)
             : Result<Journal>(tl::unexpected(text.error()));
    if (!journal) {
      report_.outcome = RunReport::Outcome::no_journal;
      report_.reason = fmt::format("its journal cannot be read: {}: {}", journal.error().where,
                                   journal.error().what);
      return;
    }
    report_.journal = *std::move(journal);
    judge(report_, tree);
  }

  void remove_own_journal() {
    if (options_.journal.empty() && !journal_.empty()) (void)files_.remove(journal_);
  }

  void note(std::string_view text) { context_.note(fmt::format("{}: {}", name_, printable(text))); }

  void say() {
    const std::string text = run_text(tables_, report_, options_.observing, context_.error_style());
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = text.find('\n', begin);
      context_.note(fmt::format("{}: {}", name_, text.substr(begin, end - begin)));
      begin = end + 1;
    }
    if (!options_.journal.empty()) note("the journal is " + journal_);
  }

  /// Standard output belongs to the program that ran.
  ExitStatus write_document() {
    if (context_.options.output.empty()) return ExitStatus::done;
    return context_.write(json_text(run_json(tables_, report_)), ExitStatus::done);
  }

  Context& context_;
  const Tables& tables_;
  const InjectedRun& options_;
  SystemEnvironment environment_;
  std::string_view name_;
  PosixFileSystem files_;
  PosixProcessRunner runner_;
  SystemClock clock_;
  ResolvedCommand resolved_;
  std::string journal_;
  std::uint64_t journal_start_ = 0;
  RunReport report_;
};

}  // namespace

void InjectedRun::add_options(CLI::App& app) {
  app.add_option("--journal", journal, "keep the journal in this file (appended to)")
      ->type_name("FILE");
  app.add_option("--arch", arch, "the slice of the program that is started");
  app.add_flag("--force", force, "start the program even where preflight says it is killed");
  guest.add_options(app);
  app.get_option("--output")
      ->description("write what was found as JSON to FILE; the program keeps standard output");
}

ExitStatus InjectedRun::run(Context& context, const Tables& tables,
                            const EmitResult& library) const {
  return Session(context, tables, *this).run(library);
}

Result<void> check_command(const Context& context, std::string_view name) {
  if (!context.command.empty() && !context.command[0].empty()) return {};
  return fail(Fault::usage, "no-program", std::string(name), "no program given",
              fmt::format("metaldoctor {} [OPTIONS] -- PROGRAM [ARGUMENT...]", name));
}

}  // namespace metaldoctor
