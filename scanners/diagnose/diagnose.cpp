#include "scanners/diagnose/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scanners/diagnose/codes.h"
#include "scanners/diagnose/compare.h"
#include "tables/hazard_match.h"

namespace metaldoctor {
namespace {

void add_os_note(Diagnosis& diagnosis) {
  const OsKnowledge& os = diagnosis.os;
  if (os.exact) return;
  diagnosis.notes.push_back(
      os.at_least
          ? fmt::format("the input does not name its macOS; {} or later is proven, {} is "
                        "assumed beyond that",
                        to_string(*os.at_least), to_string(os.assumed))
          : fmt::format("the input does not name its macOS; {} is assumed", to_string(os.assumed)));
}

void add_host_note(const Tables& tables, const Capture& capture, Diagnosis& diagnosis) {
  if (const auto foreign = foreign_device(tables, capture)) {
    diagnosis.notes.push_back(fmt::format(
        "not compared with any Apple chip, and nothing to change: {}", foreign->detail));
  } else if (diagnosis.host == nullptr) {
    diagnosis.notes.push_back(
        "the host's chip is not known, so only what is the same on every Mac was compared; give "
        "--host-chip");
  } else if (!diagnosis.host->family) {
    diagnosis.notes.push_back(
        fmt::format("the family of {} is not confirmed: nothing was compared that hangs on it",
                    diagnosis.host->name));
  }
}

/// "is_virtual: no" beside the paravirtual driver's name: Capture::is_guest believes the name.
void add_guest_note(const Capture& capture, Diagnosis& diagnosis) {
  if (capture.system.is_virtual == false && diagnosis.is_guest == true) {
    diagnosis.notes.push_back(
        "the input says that this is no virtual machine, but its name, model or CPU brand is a "
        "guest's: taken as a guest");
  }
}

/// A claim that every process of a guest suffers from, although the host's chip has the feature.
bool is_harmful_claim(const Comparison& row) {
  return row.kind == Comparison::Kind::agrees &&
         std::any_of(row.hazards.begin(), row.hazards.end(),
                     [](const ComparisonHazard& hazard) { return hazard.programs.empty(); });
}

void add_claim_notes(Diagnosis& diagnosis) {
  for (const Comparison& row : diagnosis.comparisons) {
    if (!is_harmful_claim(row)) continue;
    std::vector<std::string_view> ids;
    for (const ComparisonHazard& hazard : row.hazards) {
      if (hazard.programs.empty()) ids.push_back(hazard.id);
    }
    diagnosis.notes.push_back(
        fmt::format("{} is claimed in a guest although stock guests deny it: {}",
                    to_string(row.key), fmt::join(ids, ", ")));
  }
}

/// Hazards of old systems, where only the assumed macOS speaks against them.
void add_assumption_notes(const Tables& tables, Diagnosis& diagnosis) {
  if (diagnosis.os.exact || diagnosis.is_guest == false) return;
  std::vector<std::string_view> ids;
  for (const Hazard& hazard : tables.hazards()) {
    if (!hazard.os_to || diagnosis.os.reaches(*hazard.os_to) != OsKnowledge::Reach::assumed_yes) {
      continue;
    }
    const bool concerns = std::any_of(
        diagnosis.comparisons.begin(), diagnosis.comparisons.end(), [&](const Comparison& row) {
          return row.kind == Comparison::Kind::under_report &&
                 is_about(tables, hazard, {row.key, row.expected, row.guest, row.expected});
        });
    if (concerns) ids.push_back(hazard.id);
  }
  if (ids.empty()) return;
  diagnosis.notes.push_back(
      fmt::format("ruled out only by the assumed macOS: {}", fmt::join(ids, ", ")));
}

/// --os that is not taken as it was given.
void add_told_os_note(const DiagnoseOptions& options, Diagnosis& diagnosis) {
  if (!options.os || options.os == diagnosis.os.exact) return;
  if (true_macos(*options.os) == diagnosis.os.exact) {
    diagnosis.notes.push_back(
        fmt::format("macOS {} is what programs with an older SDK are told on 26: taken as {}",
                    to_string(*options.os), to_string(*diagnosis.os.exact)));
  } else {
    diagnosis.notes.push_back(fmt::format("the input names its macOS, {}: --os {} is not used",
                                          to_string(*diagnosis.os.exact), to_string(*options.os)));
  }
}

/// What an override says of itself is not an answer of the device, and is not compared.
void add_override_notes(const Capture& capture, Diagnosis& diagnosis) {
  constexpr std::string_view kOverride = "override.";
  for (const CapturedFact& row : capture.facts) {
    if (!row.fact.starts_with(kOverride) || !std::holds_alternative<std::int64_t>(row.value)) {
      continue;
    }
    diagnosis.notes.push_back(
        fmt::format("the override says {}={} of itself; that is not an answer of the device",
                    row.fact.substr(kOverride.size()), std::get<std::int64_t>(row.value)));
  }
}

}  // namespace

bool Diagnosis::has_findings() const {
  static constexpr std::array<std::string_view, 3> words{"mismatch", "harmful-override",
                                                         "no-device-visible"};
  if (std::ranges::find(words, verdict) != words.end()) return true;
  // What was lost may have been a mismatch: "nothing found" would be a claim.
  const bool truncated =
      std::ranges::find(codes, "LOG_TRUNCATED", &DiagnosisCode::code) != codes.end();
  if (truncated && verdict != "healthy" && verdict != "vm-works") return true;
  return std::any_of(comparisons.begin(), comparisons.end(), [](const Comparison& row) {
    return row.kind == Comparison::Kind::under_report || row.kind == Comparison::Kind::over_claim ||
           is_harmful_claim(row);
  });
}

OsKnowledge known_os(const Tables& tables, const Capture& capture, const DiagnoseOptions& options) {
  OsKnowledge os = capture.os(tables);
  if (options.os && !os.exact) os.exact = true_macos(*options.os);
  return os;
}

Diagnosis diagnose(const Tables& tables, const Capture& capture, const DiagnoseOptions& options) {
  Diagnosis diagnosis;
  const bool foreign = foreign_device(tables, capture).has_value();
  HostChip host = host_chip(tables, capture, options);
  if (!foreign) {
    diagnosis.host = host.chip;
    diagnosis.host_source = std::move(host.source);
    if (!host.contradiction.empty()) diagnosis.notes.push_back(std::move(host.contradiction));
  }
  diagnosis.os = known_os(tables, capture, options);
  diagnosis.is_guest = capture.is_guest();

  diagnosis.comparisons = foreign ? compare_with_nothing(tables, capture)
                          : diagnosis.host != nullptr
                              ? compare_with_host(tables, capture, *diagnosis.host, diagnosis.os)
                              : compare_without_host(tables, capture);
  if (!foreign) {
    add_consequences(tables, capture, diagnosis.host, diagnosis.os, diagnosis.comparisons);
  }
  diagnosis.codes = find_codes(tables, capture, diagnosis);
  diagnosis.verdict = verdict_of(tables, capture, diagnosis);
  if (diagnosis.verdict == "healthy" || diagnosis.verdict == "vm-works") {
    diagnosis.codes.insert(diagnosis.codes.begin(),
                           {"OK", "no difference was found", Evidence::inferred});
  }
  add_host_note(tables, capture, diagnosis);
  add_guest_note(capture, diagnosis);
  add_told_os_note(options, diagnosis);
  add_os_note(diagnosis);
  add_assumption_notes(tables, diagnosis);
  add_claim_notes(diagnosis);
  add_override_notes(capture, diagnosis);
  return diagnosis;
}

}  // namespace metaldoctor
