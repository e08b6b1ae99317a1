#pragma once
#include <string>

#include "shim/recommend.h"
#include "tables/document.h"
#include "tools/render/text_style.h"

namespace metaldoctor {

/// Document kind "recommendation"; the profile is embedded as its own document.
Json recommendation_json(const Recommendation& recommendation);
std::string recommendation_text(const Tables& tables, const Recommendation& recommendation,
                                TextStyle style);

}  // namespace metaldoctor
