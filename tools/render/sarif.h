#pragma once
// SARIF 2.1.0 (OASIS): what code-scanning services read.
#include <string_view>
#include <vector>

#include "scanners/code/findings.h"
#include "shim/branches.h"
#include "tables/document.h"

namespace metaldoctor {

struct SarifImage {
  const Findings* findings = nullptr;
  const BranchComparison* comparison = nullptr;
};

/// One run: a result a path that differs, a warning where the assumed device takes the worse
/// branch. Locations are addresses of the gates in the file; the rule is the path, so that a result
/// keeps its name over builds of a program that moves its code.
Json sarif_document(const std::vector<SarifImage>& images, std::string_view version);

}  // namespace metaldoctor
