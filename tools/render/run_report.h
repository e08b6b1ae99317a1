#pragma once
#include <string>

#include "shim/inject/run_report.h"
#include "tables/document.h"
#include "tools/render/text_style.h"

namespace metaldoctor {

/// Document kind "run".
Json run_json(const Tables& tables, const RunReport& report);
/// What was asked and answered, every line with `prefix`. `observing`: nothing was to be changed,
/// so every question is listed, by the image that asked it.
std::string run_text(const Tables& tables, const RunReport& report, bool observing,
                     TextStyle style);

}  // namespace metaldoctor
