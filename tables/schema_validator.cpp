// The only translation unit that includes valijson: it takes many seconds to compile.
#include "tables/schema_validator.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "tables/embedded_file.h"

namespace metaldoctor {
namespace {

std::optional<std::string_view> schema_text(std::string_view kind) {
  const std::string name = fmt::format("schemas/{}.schema.json", kind);
  for (const EmbeddedFile& file : embedded_tables()) {
    if (file.name == name) return file.bytes;
  }
  return std::nullopt;
}

/// valijson writes a path as "<root>" "[answers]" "[3]"; RFC 6901 writes it "/answers/3".
std::string json_pointer(const std::vector<std::string>& context) {
  std::string pointer;
  for (const std::string& part : context) {
    if (part.size() < 2 || part.front() != '[' || part.back() != ']') continue;
    pointer += '/';
    for (const char c : std::string_view(part).substr(1, part.size() - 2)) {
      if (c == '~') {
        pointer += "~0";
      } else if (c == '/') {
        pointer += "~1";
      } else {
        pointer += c;
      }
    }
  }
  return pointer.empty() ? "/" : pointer;
}

/// The deepest complaint is the most specific one; the outer ones only repeat that a part failed.
valijson::ValidationResults::Error deepest(valijson::ValidationResults& results) {
  valijson::ValidationResults::Error error;
  valijson::ValidationResults::Error next;
  while (results.popError(next)) {
    if (error.description.empty() || next.context.size() > error.context.size()) error = next;
  }
  return error;
}

}  // namespace

Result<void> validate_with(const Json& document, std::string_view schema, std::string_view name) {
  try {
    const nlohmann::json schema_json = nlohmann::json::parse(schema);
    const nlohmann::json target(document);
    valijson::Schema rules;
    const bool is_draft4 =
        schema_json.value("$schema", std::string()).find("draft-04") != std::string::npos;
    valijson::SchemaParser(is_draft4 ? valijson::SchemaParser::kDraft4
                                     : valijson::SchemaParser::kDraft7)
        .populateSchema(valijson::adapters::NlohmannJsonAdapter(schema_json), rules);
    valijson::Validator validator(valijson::Validator::kStrongTypes);
    valijson::ValidationResults results;
    const valijson::adapters::NlohmannJsonAdapter adapter(target);
    if (validator.validate(rules, adapter, &results)) return {};
    const auto error = deepest(results);
    return fail(Fault::input, "document-invalid",
                fmt::format("{}: {}", name, json_pointer(error.context)), error.description);
  } catch (const std::exception& e) {
    return fail(Fault::bug, "document-kind", std::string(name),
                fmt::format("its schema cannot be used: {}", e.what()));
  }
}

Result<void> validate_document(const Json& document, std::string_view kind, std::string_view name) {
  if (const auto schema = schema_text(kind)) return validate_with(document, *schema, name);
  return fail(Fault::bug, "document-kind", std::string(name),
              fmt::format("there is no schema for '{}'", kind));
}

}  // namespace metaldoctor
