#include <algorithm>
#include <map>
#include <set>

#include "scanners/diagnose/compare.h"
#include "tables/hazard_match.h"

namespace metaldoctor {
namespace {

using Kind = Comparison::Kind;
using Names = std::set<std::string, std::less<>>;

bool reaches(const Family& family, std::string_view floor) {
  return family.short_name == floor ||
         std::find(family.implies.begin(), family.implies.end(), floor) != family.implies.end();
}

const Family* family_of(const Tables& tables, const QueryKey& key) {
  if (key.query != "supportsFamily:" || key.arguments.size() != 1) return nullptr;
  return tables.family(key.arguments.front());
}

Names reported_families(const Tables& tables, const Capture& capture) {
  Names names;
  for (const CapturedAnswer& row : capture.answers) {
    const Family* family = family_of(tables, row.answer.key);
    if (family != nullptr && row.answer.value == Value{true}) names.insert(family->short_name);
  }
  return names;
}

bool any_floor_in(const Feature& feature, const Names& families) {
  for (const auto* floor : {&feature.apple, &feature.mac, &feature.metal}) {
    if (*floor && families.contains(**floor)) return true;
  }
  return false;
}

/// A family that the device may have brings the feature: its answer was not read.
bool may_have(const Tables& tables, const Capture& capture, const Feature& feature,
              const Names& on_host) {
  for (const auto* floor : {&feature.apple, &feature.mac, &feature.metal}) {
    if (!*floor || !on_host.contains(**floor)) continue;
    const Family* family = tables.family(**floor);
    if (family != nullptr && !is_known(capture.answer({"supportsFamily:", {family->value}}))) {
      return true;
    }
  }
  return false;
}

bool has_feature(const Family& family, const Feature& feature) {
  for (const auto* floor : {&feature.apple, &feature.mac, &feature.metal}) {
    if (*floor && reaches(family, **floor)) return true;
  }
  return false;
}

void add_locks(const Tables& tables, const Capture& capture, const Chip& host,
               const OsKnowledge& os, std::vector<Comparison>& rows) {
  const Names guest = reported_families(tables, capture);
  const auto host_list = chip_families(tables, host, os);
  const Names on_host(host_list.begin(), host_list.end());
  std::map<std::int64_t, Comparison*> missing;  // lowest first
  for (Comparison& row : rows) {
    if (row.kind != Kind::under_report) continue;
    if (family_of(tables, row.key) != nullptr) {
      missing.emplace(row.key.arguments.front(), &row);
    } else if (const Query* query = tables.query(row.key.query); query && !query->feature.empty()) {
      row.locks.push_back(query->feature);
    }
  }
  for (const Feature& feature : tables.features()) {
    if (!any_floor_in(feature, on_host) || any_floor_in(feature, guest)) continue;
    if (may_have(tables, capture, feature, on_host)) continue;
    if (feature.min_macos && os.reaches(*feature.min_macos) == OsKnowledge::Reach::no) continue;
    for (const auto& [value, row] : missing) {
      const Family& family = *tables.family(value);
      if (!has_feature(family, feature)) continue;
      row->locks.push_back(feature.id);
      break;
    }
  }
}

/// A guest's answer that is the host's, where stock guests answer otherwise: changed already.
const ParavirtualAnswer* stock_answer_changed(const Tables& tables, const Capture& capture,
                                              const Comparison& row) {
  if (row.kind != Kind::agrees || capture.is_guest() != true) return nullptr;
  const auto& stock = tables.paravirtual();
  const auto it = std::find_if(stock.begin(), stock.end(), [&](const ParavirtualAnswer& answer) {
    return answer.answer.key == row.key && is_raised(answer.answer.value, row.guest);
  });
  return it == stock.end() ? nullptr : &*it;
}

/// What mending an under-report would change, or what a claim has changed already; none where
/// nothing is to change.
std::optional<AnswerChange> change_of(const Tables& tables, const Capture& capture,
                                      const Comparison& row) {
  if (row.kind == Kind::over_claim) return AnswerChange{row.key, row.guest, {}, row.expected};
  if (row.kind == Kind::under_report) {
    return AnswerChange{row.key, row.expected, row.guest, row.expected};
  }
  const ParavirtualAnswer* stock = stock_answer_changed(tables, capture, row);
  if (stock == nullptr) return std::nullopt;
  return AnswerChange{row.key, row.guest, stock->answer.value, row.expected};
}

/// On a bare Mac the driver has what its chip has: only a claim above that does harm.
bool can_harm(const Hazard& hazard, const Capture& capture, const Comparison& row) {
  if (capture.is_guest() != false) return true;
  return row.kind == Kind::over_claim &&
         std::any_of(hazard.answers.begin(), hazard.answers.end(), [](const HazardAnswer& answer) {
           return answer.when != HazardAnswer::When::raised;
         });
}

/// Hazards of the process, and those of programs that are known by name. One that hangs only on
/// what a program sends says nothing here: no program was looked at.
void add_hazards(const Tables& tables, const Capture& capture, const OsKnowledge& os,
                 Comparison& row) {
  const auto change = change_of(tables, capture, row);
  if (!change) return;
  for (const Hazard& hazard : tables.hazards()) {
    const bool of_process = hazard.scope == Hazard::Scope::process;
    if (!of_process && hazard.programs.empty()) continue;
    if (!can_harm(hazard, capture, row)) continue;
    if (!is_about(tables, hazard, *change) || !applies_on(hazard, os)) continue;
    row.hazards.push_back({hazard.id, of_process ? std::vector<std::string>{} : hazard.programs});
  }
}

}  // namespace

void add_consequences(const Tables& tables, const Capture& capture, const Chip* host,
                      const OsKnowledge& os, std::vector<Comparison>& comparisons) {
  if (host != nullptr) add_locks(tables, capture, *host, os, comparisons);
  for (Comparison& row : comparisons) add_hazards(tables, capture, os, row);
}

}  // namespace metaldoctor
