#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tables/tables.h"
#include "tools/metaldoctor/exit_status.h"
#include "tools/render/text_style.h"

namespace metaldoctor {

/// Options that every command has.
struct CommonOptions {
  std::string format = "text";
  std::string output;  ///< -o; empty = standard output
  int verbosity = 0;
  std::string color = "auto";
  std::string tables_directory;
};

/// What a command runs with: its common options, the tables, and where its output goes.
class Context {
 public:
  CommonOptions options;
  /// What stood behind "--", for commands that take a program; kept away from CLI11, which splits
  /// words such as "[a,b]".
  std::vector<std::string> command;

  /// Embedded tables, or those of --tables.
  Result<const Tables*> tables();
  TextStyle style() const;
  TextStyle error_style() const;  ///< of text on standard error

  /// The document, to standard output or -o FILE.
  ExitStatus write(std::string_view document, ExitStatus status);
  /// The document to standard output whatever -o says.
  ExitStatus print(std::string_view document, ExitStatus status);
  /// One diagnostic on standard error, and the status that belongs to it.
  ExitStatus report(const Diagnostic& diagnostic);
  void note(std::string_view line);  ///< one line on standard error

 private:
  std::optional<Tables> tables_;
};

/// What a subcommand gives back to main: run it after parsing.
using Action = std::function<ExitStatus(Context&)>;

struct Command {
  std::string_view name;
  std::string_view summary;
  /// Adds the command's own options to `app` and returns what runs it.
  Action (*define)(CLI::App& app);
  bool takes_command = false;  ///< PROGRAM [ARGUMENT...] behind "--"
};

/// The formats a command can write, checked by CLI11.
void add_format_option(CLI::App& app, std::initializer_list<const char*> formats);

Action define_audit(CLI::App& app);
Action define_scan(CLI::App& app);
Action define_recommend(CLI::App& app);
Action define_preflight(CLI::App& app);
Action define_run(CLI::App& app);
Action define_trace(CLI::App& app);
Action define_apply(CLI::App& app);
Action define_rollback(CLI::App& app);
Action define_host(CLI::App& app);
Action define_emit(CLI::App& app);
Action define_explain(CLI::App& app);
Action define_tables(CLI::App& app);
Action define_verify(CLI::App& app);

}  // namespace metaldoctor
