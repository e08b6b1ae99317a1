#pragma once
#include <string>
#include <vector>

#include "scanners/code/findings.h"
#include "shim/binary_paths.h"
#include "tables/document.h"
#include "tools/render/text_style.h"

namespace metaldoctor {

/// One element of an "audit" document: {findings, programs}.
Json findings_json(const Findings& findings, const std::vector<RecognisedProgram>& programs);
/// Queries by function, ladders, gates; with -v both sides of each gate and every site, with -vv
/// what was counted or left out as well.
std::string findings_text(const Tables& tables, const Findings& findings,
                          const std::vector<RecognisedProgram>& programs, TextStyle style);

}  // namespace metaldoctor
