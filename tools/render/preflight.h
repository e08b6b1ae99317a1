#pragma once
#include <string>

#include "shim/inject/preflight.h"
#include "tables/document.h"
#include "tools/render/text_style.h"

namespace metaldoctor {

struct PreflightReport {
  std::string file;                ///< as the user gave it
  std::string path;                ///< where the program is taken to lie
  std::vector<std::string> steps;  ///< how the program was found: bundles, scripts, launchers
  std::vector<std::string> advice;
  ProgramPreflight program;
};

/// Document kind "preflight".
Json preflight_json(const Tables& tables, const PreflightReport& report);
std::string preflight_text(const Tables& tables, const PreflightReport& report, TextStyle style);

/// The verdict in few words and fields, for documents about something else.
Json injection_json(const Preflight& slice);
std::string injection_line(const Preflight& slice, TextStyle style);

/// "refused silently": a verdict of the table in words.
std::string_view verdict_words(std::string_view verdict);

}  // namespace metaldoctor
