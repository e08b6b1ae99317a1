#include "scanners/diagnose/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "scanners/diagnose/codes.h"
#include "scanners/diagnose/compare.h"

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

void add_host_note(Diagnosis& diagnosis) {
  if (diagnosis.host == nullptr) {
    diagnosis.notes.push_back(
        "the host's chip is not known, so only what is the same on every Mac was compared; give "
        "--host-chip");
  } else if (!diagnosis.host->family) {
    diagnosis.notes.push_back(
        fmt::format("the family of {} is not confirmed: nothing was compared that hangs on it",
                    diagnosis.host->name));
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
  if (verdict == "mismatch" || verdict == "harmful-override") return true;
  return std::any_of(comparisons.begin(), comparisons.end(), [](const Comparison& row) {
    return row.kind == Comparison::Kind::under_report || row.kind == Comparison::Kind::over_claim;
  });
}

Diagnosis diagnose(const Tables& tables, const Capture& capture, const DiagnoseOptions& options) {
  Diagnosis diagnosis;
  std::tie(diagnosis.host, diagnosis.host_source) = host_chip(tables, capture, options);
  diagnosis.os = capture.os(tables);
  if (options.os) diagnosis.os.exact = options.os;
  diagnosis.is_guest = capture.is_guest();

  if (diagnosis.host != nullptr) {
    diagnosis.comparisons = compare_with_host(tables, capture, *diagnosis.host, diagnosis.os);
    add_consequences(tables, capture, *diagnosis.host, diagnosis.os, diagnosis.comparisons);
  } else {
    diagnosis.comparisons = compare_without_host(tables, capture);
  }
  diagnosis.codes = find_codes(tables, capture, diagnosis);
  diagnosis.verdict = verdict_of(capture, diagnosis);
  if (diagnosis.verdict == "healthy" || diagnosis.verdict == "vm-works") {
    diagnosis.codes.insert(diagnosis.codes.begin(),
                           {"OK", "no difference was found", Evidence::inferred});
  }
  add_host_note(diagnosis);
  add_os_note(diagnosis);
  add_override_notes(capture, diagnosis);
  return diagnosis;
}

}  // namespace metaldoctor
