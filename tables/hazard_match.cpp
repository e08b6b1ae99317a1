#include "tables/hazard_match.h"

#include <algorithm>

#include "tables/host_answers.h"

namespace metaldoctor {
namespace {

bool matches(const Tables& tables, const HazardAnswer& row, const AnswerChange& change) {
  if (row.query != "*" && row.query != change.key.query) return false;
  const bool has_argument = !change.key.arguments.empty();
  if (row.argument && (!has_argument || change.key.arguments.front() != *row.argument))
    return false;
  switch (row.when) {
    case HazardAnswer::When::raised:
      return is_raised(change.from, change.to);
    case HazardAnswer::When::above_table: {
      if (change.key.query == "supportsFamily:") {
        const bool exists = has_argument && tables.family(change.key.arguments.front()) != nullptr;
        return !exists && change.to == Value{true};
      }
      const auto limit = any_host_answer(tables, change.key);
      return limit && is_raised(limit->answer.value, change.to);
    }
    case HazardAnswer::When::above_host:
      return is_known(change.host) && is_raised(change.host, change.to);
  }
  return false;
}

}  // namespace

bool is_raised(const Value& from, const Value& to) {
  if (const bool* yes = std::get_if<bool>(&to)) return *yes && from != to;
  const auto* larger = std::get_if<std::int64_t>(&to);
  if (larger == nullptr) return false;
  const auto* known = std::get_if<std::int64_t>(&from);
  return known == nullptr || *larger > *known;
}

bool is_about(const Tables& tables, const Hazard& hazard, const AnswerChange& change) {
  return std::ranges::any_of(hazard.answers,
                             [&](const HazardAnswer& row) { return matches(tables, row, change); });
}

bool applies_on(const Hazard& hazard, const OsKnowledge& os) {
  using Reach = OsKnowledge::Reach;
  if (hazard.os_from && os.reaches(*hazard.os_from) == Reach::no) return false;
  return !hazard.os_to || os.reaches(*hazard.os_to) == Reach::no;
}

}  // namespace metaldoctor
