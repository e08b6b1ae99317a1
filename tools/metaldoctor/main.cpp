#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "tools/metaldoctor/context.h"

namespace metaldoctor {
namespace {

constexpr auto commands = std::to_array<Command>({
    {"scan", "what a device answers against what its host's chip would answer", define_scan},
    {"audit", "which questions a binary asks the device, and what hangs on the answers",
     define_audit},
    {"recommend", "the smallest set of changed answers that opens a program's paths",
     define_recommend},
    {"emit", "writes the library that gives one program the answers of a profile", define_emit},
    {"verify", "what such a library does, from its bytes and by executing them", define_verify},
    {"preflight", "whether a library can be injected into a program, from its file",
     define_preflight},
    {"run", "-- PROGRAM...: one program with a profile's answers, and what it asked", define_run,
     true},
    {"trace", "-- PROGRAM...: which questions one program asks its device", define_trace, true},
    {"apply", "[-- PROGRAM...]: a launch agent or a wrapper with a profile's answers", define_apply,
     true},
    {"rollback", "takes back what apply wrote, from its receipt", define_rollback},
    {"host", "the host's preference for paravirtualised graphics: status, enable, disable",
     define_host},
    {"explain", "what a query, feature, hazard, code or path means, with its source",
     define_explain},
    {"tables", "list and validate the tables everything is judged by", define_tables},
});

std::string exit_status_help() {
  std::string text = "Exit status:\n";
  for (const ExitStatusText& row : exit_status_texts) {
    text += fmt::format("  {:<3} {}\n", static_cast<int>(row.status), row.text);
  }
  return text;
}

void add_common_options(CLI::App& app, CommonOptions& options) {
  app.add_option("--format", options.format, "text or json")->capture_default_str();
  app.add_option("-o,--output", options.output, "write the document to FILE")->type_name("FILE");
  app.add_flag("-v,--verbose", options.verbosity, "evidence and sources; twice: everything");
  app.add_option("--color", options.color, "auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
  app.add_option("--tables", options.tables_directory, "override table files by those in DIR")
      ->type_name("DIR");
}

/// Cuts what stands behind "--" off the arguments of a command that takes a program.
int cut_command(int argc, char** argv, std::vector<std::string>& command) {
  const auto takes_command = [&] {
    return std::ranges::any_of(
        commands, [&](const Command& row) { return row.takes_command && row.name == argv[1]; });
  };
  if (argc < 2 || !takes_command()) return argc;
  for (int i = 2; i < argc; ++i) {
    if (std::string_view(argv[i]) != "--") continue;
    command.assign(argv + i + 1, argv + argc);
    return i;
  }
  return argc;
}

ExitStatus run(int argc, char** argv) {
  Context context;
  argc = cut_command(argc, argv, context.command);
  CLI::App app{
      "metaldoctor: finds the Metal answers that a macOS guest under-reports, and mends them for "
      "one process, never above what the host's chip has",
      "metaldoctor"};
  app.set_version_flag("--version", "metaldoctor " METALDOCTOR_VERSION);
  app.footer(exit_status_help());
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, Action>> actions;
  for (const Command& command : commands) {
    CLI::App* sub = app.add_subcommand(std::string(command.name), std::string(command.summary));
    sub->footer(exit_status_help());
    add_common_options(*sub, context.options);
    actions.emplace_back(sub, command.define(*sub));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error, std::cout, std::cerr);
    return code == 0 ? ExitStatus::done : ExitStatus::usage;
  }
  for (auto& [sub, action] : actions) {
    if (sub->parsed()) return action(context);
  }
  return ExitStatus::usage;
}

}  // namespace
}  // namespace metaldoctor

int main(int argc, char** argv) {
  using metaldoctor::ExitStatus;
  try {
    return static_cast<int>(metaldoctor::run(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "metaldoctor: a fault of ours: %s\n", error.what());
    return static_cast<int>(ExitStatus::bug);
  }
}
