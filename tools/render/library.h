#pragma once
#include <string>

#include "shim/emit.h"
#include "shim/verify.h"
#include "tables/document.h"
#include "tools/render/text_style.h"

namespace metaldoctor {

/// A library as it was written: `path` is the absolute one that the run line names.
/// Document kind "emitted".
Json emitted_json(const EmitResult& emitted, const std::string& path);
std::string emitted_text(const Tables& tables, const EmitResult& emitted, const std::string& path,
                         TextStyle style);

/// Document kind "verification".
Json verification_json(const VerifyReport& report, const std::string& path);
std::string verification_text(const Tables& tables, const VerifyReport& report,
                              const std::string& path, TextStyle style);

}  // namespace metaldoctor
