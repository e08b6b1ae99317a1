#pragma once
#include <string_view>

#include "tables/document.h"

namespace metaldoctor {

/// Validates against a JSON Schema (draft 4 or 7, as it says itself) that the caller brings; the
/// error names the JSON pointer. Documents of ours: validate_document.
Result<void> validate_with(const Json& document, std::string_view schema, std::string_view name);

}  // namespace metaldoctor
