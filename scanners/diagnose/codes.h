#pragma once
#include <optional>
#include <string>
#include <vector>

#include "scanners/device/capture.h"
#include "scanners/diagnose/diagnose.h"
#include "tables/tables.h"

namespace metaldoctor {

/// The codes that hold, without OK. `diagnosis` has its host, OS and comparisons already.
std::vector<DiagnosisCode> find_codes(const Tables& tables, const Capture& capture,
                                      const Diagnosis& diagnosis);
/// NON_APPLE_GPU, VM_INTEL_PARAVIRTUAL or VM_INTEL_PARAVIRTUAL_LIKELY: a device that no Apple chip
/// is behind.
std::optional<DiagnosisCode> foreign_device(const Tables& tables, const Capture& capture);
/// The one word for all of it.
std::string verdict_of(const Tables& tables, const Capture& capture, const Diagnosis& diagnosis);
/// Every code and word that may be given, so that a test can hold them against the tables.
std::vector<std::string> all_codes();
std::vector<std::string> all_verdict_words();

}  // namespace metaldoctor
