#pragma once
#include <string>

#include "shim/branches.h"
#include "tables/document.h"
#include "tools/render/text_style.h"

namespace metaldoctor {

/// The member "branches" of an image in an "audit" document.
Json branches_json(const BranchComparison& comparison);
/// What goes another way, the worse ones first; with -v what goes the same way or is not known too.
std::string branches_text(const BranchComparison& comparison, TextStyle style);

}  // namespace metaldoctor
