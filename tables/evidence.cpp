#include "tables/evidence.h"

#include <algorithm>
#include <array>
#include <utility>

namespace metaldoctor {
namespace {

constexpr std::array<std::pair<Evidence, std::string_view>, 6> kNames{{
    {Evidence::measured, "measured"},
    {Evidence::executed, "executed"},
    {Evidence::read, "read"},
    {Evidence::documented, "documented"},
    {Evidence::inferred, "inferred"},
    {Evidence::unknown, "unknown"},
}};

}  // namespace

std::string_view to_string(Evidence evidence) {
  for (const auto& [value, name] : kNames) {
    if (value == evidence) return name;
  }
  return "unknown";
}

std::optional<Evidence> parse_evidence(std::string_view text) {
  for (const auto& [value, name] : kNames) {
    if (name == text) return value;
  }
  return std::nullopt;
}

Evidence weaker(Evidence a, Evidence b) {
  return std::max(a, b);
}

}  // namespace metaldoctor
