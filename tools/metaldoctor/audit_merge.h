#pragma once
#include <string>
#include <vector>

#include "tables/document.h"

namespace metaldoctor {

/// One audit document of several, so that a big tree can be split over machines. An image that
/// another document has already (same UUID, contents, architecture and member) is left out.
Result<Json> merge_audits(const std::vector<std::string>& paths);

}  // namespace metaldoctor
