#pragma once
#include <optional>
#include <string>
#include <vector>

#include "scanners/device/capture.h"
#include "tables/host_answers.h"
#include "tables/tables.h"

namespace metaldoctor {

/// A hazard of an answer.
struct ComparisonHazard {
  std::string id;
  std::vector<std::string> programs;  ///< whose hazard it is; empty = of every process
  friend bool operator==(const ComparisonHazard&, const ComparisonHazard&) = default;
};

/// One answer compared with the tables, both ways.
struct Comparison {
  enum class Kind { agrees, under_report, over_claim, unknown } kind = Kind::unknown;
  QueryKey key;
  Value guest;     ///< unknown where the capture does not say
  Value expected;  ///< the host's answer by the tables; unknown where they do not say
  Evidence evidence = Evidence::unknown;  ///< of the comparison: the weaker of both sides
  Evidence guest_evidence = Evidence::unknown;
  Evidence expected_evidence = Evidence::unknown;
  std::string reason;                     ///< why it is unknown, or what the expectation rests on
  std::vector<std::string> locks;         ///< feature ids that an under-report locks
  std::vector<ComparisonHazard> hazards;  ///< of unlocking it, or of the claim
  std::vector<std::string> sources;
};

struct DiagnosisCode {
  std::string code;    ///< a Verdict that is not a word
  std::string detail;  ///< what of this capture it rests on
  Evidence evidence = Evidence::unknown;
};

struct Diagnosis {
  const Chip* host = nullptr;  ///< none = unknown: only device-independent checks ran
  std::string host_source;     ///< "--host-chip", "cpu_brand", "device name"
  OsKnowledge os;
  std::optional<bool> is_guest;
  std::string verdict;  ///< a Verdict word
  std::vector<DiagnosisCode> codes;
  std::vector<Comparison> comparisons;  ///< table order
  std::vector<std::string> notes;       ///< assumptions and what was not checked

  /// Any under-report or over-claim, or a verdict that says so without a comparison: without a
  /// host, families are not compared, yet Apple5 is too low for any Mac.
  bool has_findings() const;
};

struct DiagnoseOptions {
  const Chip* host = nullptr;   ///< --host-chip
  std::optional<OsVersion> os;  ///< --os
};

Diagnosis diagnose(const Tables& tables, const Capture& capture, const DiagnoseOptions& options);

/// The macOS that the input names, else that of --os.
OsKnowledge known_os(const Tables& tables, const Capture& capture, const DiagnoseOptions& options);

/// Why no answer of this device may be changed, whatever the host: the GPU is not one of Apple's,
/// the guest is that of an Intel Mac, or the input shows no device. Apple's chips say nothing about
/// such a device, so it is not compared with one either. None = answers may be changed.
std::optional<std::string> not_overridable(const Tables& tables, const Capture& capture);

/// The host chip: what the device itself says, the CPU brand ("Apple M1 Ultra (Virtual)") or a
/// bare-metal device name, else the option. Shared with recommend, so that both say the same.
struct HostChip {
  const Chip* chip = nullptr;
  std::string source;         ///< "cpu_brand", "device name", "--host-chip"; empty without a chip
  std::string contradiction;  ///< the option names another chip than the device does; else empty
};
HostChip host_chip(const Tables& tables, const Capture& capture, const DiagnoseOptions& options);

}  // namespace metaldoctor
