#include "tools/metaldoctor/context.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "tools/metaldoctor/files.h"

namespace metaldoctor {
namespace {

/// Every .json below `directory`, by its path relative to it.
Result<std::map<std::string, std::string>> read_directory(const std::string& directory) {
  namespace fs = std::filesystem;
  std::map<std::string, std::string> files;
  std::error_code error;
  fs::recursive_directory_iterator it(directory, error), end;
  for (; !error && it != end; it.increment(error)) {
    if (it->path().extension() != ".json") continue;
    // Leaving out a table that cannot be read would silently judge by the built-in one.
    if (!it->is_regular_file(error)) {
      return fail(Fault::input, "unreadable", it->path().string(), "is not a regular file");
    }
    auto text = read_file(it->path().string());
    if (!text) return tl::unexpected(text.error());
    files.emplace(it->path().lexically_relative(directory).generic_string(), std::move(*text));
  }
  if (error) return fail(Fault::input, "unreadable", directory, error.message());
  if (files.empty()) {
    return fail(Fault::input, "unreadable", directory, "holds no .json table",
                "copy the tables/data files you want to change, with their names");
  }
  return files;
}

}  // namespace

Result<const Tables*> Context::tables() {
  if (!tables_) {
    Result<Tables> loaded = fail(Fault::bug, "bug", "tables", "not loaded");
    if (options.tables_directory.empty()) {
      loaded = Tables::embedded();
    } else {
      auto files = read_directory(options.tables_directory);
      if (!files) return tl::unexpected(files.error());
      loaded = Tables::with_overrides(std::move(*files), options.tables_directory);
    }
    if (!loaded) return tl::unexpected(loaded.error());
    tables_.emplace(std::move(*loaded));
  }
  return &*tables_;
}

namespace {

TextStyle style_for(const CommonOptions& options, bool terminal) {
  TextStyle style;
  style.verbosity = options.verbosity;
  const char* no_color = std::getenv("NO_COLOR");
  const bool wanted = terminal && (no_color == nullptr || *no_color == '\0');
  style.color = options.color == "always" || (options.color == "auto" && wanted);
  return style;
}

}  // namespace

TextStyle Context::style() const {
  return style_for(options, options.output.empty() && ::isatty(STDOUT_FILENO) != 0);
}

TextStyle Context::error_style() const {
  return style_for(options, ::isatty(STDERR_FILENO) != 0);
}

ExitStatus Context::print(std::string_view document, ExitStatus status) {
  const bool written =
      std::fwrite(document.data(), 1, document.size(), stdout) == document.size() &&
      std::fflush(stdout) == 0;
  if (written) return status;
  return report({Fault::input, "unwritable", "standard output", "cannot write", {}});
}

ExitStatus Context::write(std::string_view document, ExitStatus status) {
  if (options.output.empty() || options.output == "-") return print(document, status);
  auto written = write_file(options.output, document);
  return written ? status : report(written.error());
}

ExitStatus Context::report(const Diagnostic& diagnostic) {
  std::string line = "metaldoctor: ";
  if (!diagnostic.where.empty()) line += printable(diagnostic.where) + ": ";
  line += printable(diagnostic.what);
  if (!diagnostic.code.empty()) line += " [" + diagnostic.code + "]";
  if (!diagnostic.hint.empty()) line += "\n  hint: " + printable(diagnostic.hint);
  note(line);
  return exit_status(diagnostic.fault);
}

void Context::note(std::string_view line) {
  // A closed or full standard error must not end the command: fmt::print would throw.
  const std::string text = fmt::format("{}\n", line);
  std::fputs(text.c_str(), stderr);
}

void add_format_option(CLI::App& app, std::initializer_list<const char*> formats) {
  auto* option = app.get_option("--format");
  option->check(CLI::IsMember(std::vector<std::string>(formats.begin(), formats.end())));
}

}  // namespace metaldoctor
