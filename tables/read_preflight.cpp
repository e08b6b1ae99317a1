#include "tables/table_source.h"

namespace metaldoctor {

Result<PreflightRow> read_preflight_row(const Json& row) {
  PreflightRow out;
  out.id = text_of(row, "id");
  for (const auto& [fact, values] : row.at("when").items()) {
    out.when.emplace_back(fact, values.get<std::vector<std::string>>());
  }
  out.verdict = text_of(row, "verdict");
  out.reason = text_of(row, "reason");
  out.todo = text_of(row, "todo");
  out.provenance = read_provenance(row);
  return out;
}

Result<SystemPlace> read_system_place(const Json& row) {
  return SystemPlace{text_of(row, "prefix"), row.at("system").get<bool>(), read_provenance(row)};
}

Result<Launcher> read_launcher(const Json& row) {
  return Launcher{text_of(row, "name"), text_of(row, "kind") == "assignments",
                  text_of(row, "advice"), read_provenance(row)};
}

}  // namespace metaldoctor
