#pragma once
#include <string>
#include <vector>

#include "scanners/code/findings_diff.h"
#include "tables/document.h"
#include "tools/render/text_style.h"

namespace metaldoctor {

/// One architecture of two builds of a program.
struct ProgramDiffRow {
  const Findings* first = nullptr;
  const Findings* second = nullptr;
  std::vector<FindingsChange> changes;
};
using ProgramDiff = std::vector<ProgramDiffRow>;

/// Document kind "program-diff".
Json program_diff_json(const ProgramDiff& diff);
std::string program_diff_text(const ProgramDiff& diff, TextStyle style);

}  // namespace metaldoctor
