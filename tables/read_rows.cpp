// The shared pieces of table rows.
#include "tables/table_source.h"

namespace metaldoctor {

std::string text_of(const Json& row, const char* key) {
  return row.value(key, std::string());
}

std::optional<std::string> optional_text(const Json& row, const char* key) {
  const auto found = row.find(key);
  if (found == row.end() || found->is_null()) return std::nullopt;
  return found->get<std::string>();
}

std::vector<std::string> texts_of(const Json& row, const char* key) {
  return row.value(key, std::vector<std::string>());
}

std::optional<OsVersion> optional_version(const Json& row, const char* key) {
  const auto text = optional_text(row, key);
  return text ? parse_os_version(*text) : std::nullopt;
}

OsVersion version_of(const Json& row, const char* key) {
  return optional_version(row, key).value_or(OsVersion{});
}

Value value_of(const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_string()) return json.get<std::string>();
  return std::monostate{};
}

Provenance read_provenance(const Json& row) {
  return {parse_evidence(text_of(row, "evidence")).value_or(Evidence::unknown),
          texts_of(row, "sources"), text_of(row, "note")};
}

}  // namespace metaldoctor
