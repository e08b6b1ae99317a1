#pragma once
#include <string>

#include "scanners/device/capture.h"
#include "scanners/diagnose/diagnose.h"
#include "tables/document.h"
#include "tables/tables.h"
#include "tools/render/text_style.h"

namespace metaldoctor {

/// Document kind "diagnosis".
Json diagnosis_json(const Capture& capture, const Diagnosis& diagnosis);
std::string diagnosis_text(const Tables& tables, const Capture& capture, const Diagnosis& diagnosis,
                           TextStyle style);

/// A document as text: two-space indent, a final newline, invalid UTF-8 replaced.
std::string json_text(const Json& document);
Json to_json(const Value& value);   ///< unknown is null
Json to_json(const QueryKey& key);  ///< {"query":..., "arguments":[...]}

/// "supportsFamily:1007 (Apple7)": families by name where the tables know them.
std::string query_text(const Tables& tables, const QueryKey& key);

}  // namespace metaldoctor
