#pragma once
// Internal to tables/: where the text of a table comes from, and what every reader shares.
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tables/diagnostic.h"
#include "tables/document.h"
#include "tables/tables.h"

namespace metaldoctor {

/// The embedded files, with those of a directory before them.
class TableSource {
 public:
  TableSource() = default;
  TableSource(std::map<std::string, std::string, std::less<>> overrides, std::string directory)
      : overrides_(std::move(overrides)), directory_(std::move(directory)) {}

  /// Names below tables/data, sorted: "families.json", "apps/mlx.json".
  std::vector<std::string> names() const;
  std::optional<std::string_view> text(std::string_view name) const;
  bool is_override(std::string_view name) const { return overrides_.contains(name); }
  /// The name for messages: below the directory of the override, or below the source tree.
  std::string shown(std::string_view name) const;

 private:
  std::map<std::string, std::string, std::less<>> overrides_;
  std::string directory_;
};

/// "families.json" -> "table.families", "apps/mlx.json" -> "table.app".
std::string table_kind(std::string_view name);

/// Readers of one row or file. The document has passed its schema; what is wrong beyond that is
/// reported with a JSON pointer. nlohmann's exceptions are caught by the caller of all of them.
Result<Family> read_family(const Json& row);
Result<FeatureSet> read_feature_set(const Json& row);
Result<Chip> read_chip(const Json& row);
Result<Feature> read_feature(const Json& row);
Result<Limit> read_limit(const Json& row);
Result<Query> read_query(const Json& row);
Result<Hazard> read_hazard(const Json& row);
Result<Verdict> read_verdict(const Json& row);
Result<ParavirtualAnswer> read_paravirtual(const Json& row);
Result<Observation> read_observation(const Json& row);
Result<LogGrammar> read_log_grammar(const Json& row);
Result<PreflightRow> read_preflight_row(const Json& row);
Result<SystemPlace> read_system_place(const Json& row);
Result<Launcher> read_launcher(const Json& row);
Result<App> read_app(const Json& file);

/// Shared pieces of rows.
Provenance read_provenance(const Json& row);
std::string text_of(const Json& row, const char* key);
std::optional<std::string> optional_text(const Json& row, const char* key);
std::vector<std::string> texts_of(const Json& row, const char* key);
/// A version such as "15.0"; 0.0 where the key is absent. The schema has checked the form.
OsVersion version_of(const Json& row, const char* key);
std::optional<OsVersion> optional_version(const Json& row, const char* key);
/// null = unknown, true, 1024, "no limit".
Value value_of(const Json& json);

}  // namespace metaldoctor
