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
    if (feature.min_macos && os.reaches(*feature.min_macos) == OsKnowledge::Reach::no) continue;
    for (const auto& [value, row] : missing) {
      const Family& family = *tables.family(value);
      if (!has_feature(family, feature)) continue;
      row->locks.push_back(feature.id);
      break;
    }
  }
}

/// What mending an under-report would change, or what an over-claim has changed already.
AnswerChange change_of(const Comparison& row) {
  if (row.kind == Kind::over_claim) return {row.key, row.guest, {}, row.expected};
  return {row.key, row.expected, row.guest, row.expected};
}

/// Hazards of the process, and those of programs that are known by name. One that hangs only on
/// what a program sends says nothing here: no program was looked at.
void add_hazards(const Tables& tables, const OsKnowledge& os, Comparison& row) {
  const AnswerChange change = change_of(row);
  for (const Hazard& hazard : tables.hazards()) {
    const bool of_process = hazard.scope == Hazard::Scope::process;
    if (!of_process && hazard.programs.empty()) continue;
    if (!is_about(tables, hazard, change) || !applies_on(hazard, os)) continue;
    row.hazards.push_back({hazard.id, of_process ? std::vector<std::string>{} : hazard.programs});
  }
}

}  // namespace

void add_consequences(const Tables& tables, const Capture& capture, const Chip& host,
                      const OsKnowledge& os, std::vector<Comparison>& comparisons) {
  add_locks(tables, capture, host, os, comparisons);
  for (Comparison& row : comparisons) {
    if (row.kind == Kind::under_report || row.kind == Kind::over_claim) {
      add_hazards(tables, os, row);
    }
  }
}

}  // namespace metaldoctor
