#pragma once
// Internal to tables/: the parsed parts of Tables.
#include <fmt/format.h>

#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tables/table_source.h"
#include "tables/tables.h"

namespace metaldoctor {

/// Reads files into rows and remembers the sources that they name.
class TableReader {
 public:
  explicit TableReader(TableSource source) : source_(std::move(source)) {}
  const TableSource& source() const { return source_; }

  /// The document of one file. Overrides are checked strictly, embedded files by the tests.
  Result<Json> document(std::string_view name);

  /// Reads `array` of a file with `read_row`.
  template <typename Row>
  Result<std::vector<Row>> rows(std::string_view name, const char* array,
                                Result<Row> (*read_row)(const Json&)) {
    auto file = document(name);
    if (!file) return tl::unexpected(file.error());
    std::vector<Row> rows;
    std::size_t index = 0;
    try {
      for (const Json& json : file->at(array)) {
        auto row = read_row(json);
        if (!row) return tl::unexpected(located(row.error(), name));
        rows.push_back(std::move(*row));
        ++index;
      }
    } catch (const nlohmann::json::exception& e) {
      return malformed(name, fmt::format("/{}/{}", array, index), e.what());
    }
    return rows;
  }
  /// A program with the rules that its ranges include (one step: validation refuses a chain).
  Result<App> app(std::string_view name);
  /// The same as its file has it.
  Result<App> own_rules(std::string_view name);
  /// The range of `app` that "app@range" names, or null.
  static const AppRange* app_range(const App& app, std::string_view spec);
  Result<std::vector<App>> apps();

  const std::string* citation(std::string_view key) const;
  const std::string& edition() const { return edition_; }
  OsVersion newest_macos() const { return newest_macos_; }

 private:
  static void include(const AppRange& from, const std::string& name, AppRange& into);
  Diagnostic located(Diagnostic diagnostic, std::string_view name) const;
  tl::unexpected<Diagnostic> malformed(std::string_view name, const std::string& pointer,
                                       std::string what) const;
  void remember_header(const Json& file, std::string_view name);

  TableSource source_;
  std::map<std::string, std::string, std::less<>> citations_;
  std::string edition_;
  OsVersion newest_macos_;
};

struct Tables::Impl {
  explicit Impl(TableSource source) : reader(std::move(source)) {}

  /// A part that is there already, or is read now.
  template <typename Row>
  const std::vector<Row>& part(std::optional<std::vector<Row>>& cached, std::string_view name,
                               const char* array, Result<Row> (*read_row)(const Json&)) {
    if (!cached) cached = must(reader.rows<Row>(name, array, read_row));
    return *cached;
  }
  template <typename T>
  static T must(Result<T> result) {
    if (result) return std::move(*result);
    throw std::logic_error(result.error().where + ": " + result.error().what);
  }

  TableReader reader;
  std::optional<std::vector<Family>> families;
  std::optional<std::vector<FeatureSet>> feature_sets;
  std::optional<std::vector<Chip>> chips;
  std::optional<std::vector<Feature>> features;
  std::optional<std::vector<Limit>> limits;
  std::optional<std::vector<Query>> queries;
  std::optional<std::vector<Hazard>> hazards;
  std::optional<std::vector<App>> apps;
  std::map<std::string, App, std::less<>> single_apps;  ///< by file, where only one was needed
  std::optional<std::vector<Verdict>> verdicts;
  std::optional<std::vector<ParavirtualAnswer>> paravirtual;
  std::optional<std::vector<Observation>> observations;
  std::optional<std::vector<LogGrammar>> log_grammars;
  std::optional<std::vector<PreflightRow>> preflight_rows;
  std::optional<std::vector<SystemPlace>> system_places;
  std::optional<std::vector<Launcher>> launchers;
};

/// Schemas of every file, then the references between files.
std::vector<Tables::FileReport> validate_tables(const TableSource& source, const Tables& tables);

}  // namespace metaldoctor
