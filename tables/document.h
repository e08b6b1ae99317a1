#pragma once
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "tables/diagnostic.h"

namespace metaldoctor {

using Json = nlohmann::ordered_json;

/// Bounds checked before and while a document is parsed.
struct DocumentLimits {
  std::size_t bytes = std::size_t{64} << 20;
  std::size_t depth = 64;
  std::size_t values = 2'000'000;
  std::size_t members = 1024;  ///< of one object; Json finds a member by walking over all of them
};

/// Parses JSON strictly: UTF-8, no duplicate keys, within `limits`, no integer beyond +-2^53 and no
/// non-finite number (larger integers are decimal strings in every document of ours).
/// `name` is the file's name for messages; errors carry the byte offset.
Result<Json> parse_json(std::string_view text, std::string_view name, DocumentLimits limits = {});

/// Validates against tables/schemas/<kind>.schema.json; the error names the JSON pointer.
Result<void> validate_document(const Json& document, std::string_view kind, std::string_view name);

/// parse_json, then `schema` must be "metaldoctor.<kind>/1", then validate_document.
Result<Json> read_document(std::string_view text, std::string_view kind, std::string_view name);

}  // namespace metaldoctor
