#pragma once
#include <string>
#include <string_view>

#include "tables/tables.h"
#include "tools/render/text_style.h"

namespace metaldoctor {

/// What one name means: a query, family, feature, limit, hazard, verdict word or code, chip,
/// program or observation. Several kinds may share a name; all are given.
/// Document kind "explanation": {name, entries:[{kind, ...}]}.
Result<Json> explain(const Tables& tables, std::string_view name);
std::string explanation_text(const Tables& tables, const Json& explanation, TextStyle style);

/// The rows of one table, or the list of tables where `name` is empty.
/// Document kind "table-list".
Result<Json> list_tables(const Tables& tables, std::string_view name);
std::string table_list_text(const Json& list, TextStyle style);

}  // namespace metaldoctor
