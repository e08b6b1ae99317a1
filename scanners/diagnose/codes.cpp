#include "scanners/diagnose/codes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

namespace metaldoctor {
namespace {

using Kind = Comparison::Kind;
using Found = std::optional<DiagnosisCode>;

constexpr std::int64_t kApple10 = 1010;
constexpr std::int64_t kMetal3 = 5001;
constexpr std::int64_t kMetal4 = 5002;

/// What the rules look at; each rule sees the codes that those before it gave.
struct Case {
  const Tables& tables;
  const Capture& capture;
  const Diagnosis& diagnosis;
  std::vector<DiagnosisCode> codes;
  std::optional<DiagnosisCode> foreign;

  bool guest() const { return diagnosis.is_guest == true; }
  /// A guest of an Apple silicon Mac, as far as can be told.
  bool apple_guest() const { return guest() && !foreign; }
  bool has(std::string_view code) const {
    return std::any_of(codes.begin(), codes.end(),
                       [&](const DiagnosisCode& row) { return row.code == code; });
  }
  Value fact(std::string_view name) const {
    const CapturedFact* row = capture.fact(name);
    return row ? row->value : Value{};
  }
  bool fact_is(std::string_view name, bool value) const { return fact(name) == Value{value}; }
  Evidence fact_evidence(std::string_view name) const {
    const CapturedFact* row = capture.fact(name);
    return row ? row->evidence : Evidence::unknown;
  }
  Value family(std::int64_t value) const { return capture.answer({"supportsFamily:", {value}}); }
};

DiagnosisCode code(std::string detail, Evidence evidence) {
  return {{}, std::move(detail), evidence};
}

std::string short_name(const Case& c, std::int64_t value) {
  const Family* family = c.tables.family(value);
  return family ? family->short_name : fmt::format("{}", value);
}

/// The comparisons of one line of families and kind, by value.
std::vector<const Comparison*> families_that(const Case& c, Kind kind, std::string_view line) {
  std::vector<const Comparison*> rows;
  for (const Comparison& row : c.diagnosis.comparisons) {
    if (row.kind != kind || row.key.query != "supportsFamily:") continue;
    const Family* family = c.tables.family(row.key.arguments.front());
    if (line.empty() || (family != nullptr && family->line == line)) rows.push_back(&row);
  }
  return rows;
}

std::string names_of(const Case& c, const std::vector<const Comparison*>& rows) {
  std::vector<std::string> names;
  for (const Comparison* row : rows) names.push_back(short_name(c, row->key.arguments.front()));
  return fmt::format("{}", fmt::join(names, ", "));
}

/// The highest family of a line that the device says yes to.
std::optional<std::int64_t> highest(const Case& c, std::string_view line) {
  std::optional<std::int64_t> value;
  for (const CapturedAnswer& row : c.capture.answers) {
    if (row.answer.key.query != "supportsFamily:" || row.answer.value != Value{true}) continue;
    const Family* family = c.tables.family(row.answer.key.arguments.front());
    if (family != nullptr && family->line == line && value.value_or(0) < family->value) {
      value = family->value;
    }
  }
  return value;
}

Found vm_detected(const Case& c) {
  if (!c.guest()) return {};
  const auto& system = c.capture.system;
  if (c.capture.name.find("Paravirtual") != std::string::npos) {
    return code(fmt::format("device '{}'", c.capture.name), Evidence::measured);
  }
  if (!system.cpu_brand.empty()) return code(system.cpu_brand, Evidence::measured);
  if (!system.hw_model.empty()) return code(system.hw_model, Evidence::measured);
  return code("the input says so", Evidence::measured);
}

Found host_chip_known(const Case& c) {
  if (!c.guest() || c.diagnosis.host == nullptr || c.diagnosis.host_source != "cpu_brand") {
    return {};
  }
  return code(fmt::format("{}, from the CPU brand '{}'", c.diagnosis.host->name,
                          c.capture.system.cpu_brand),
              Evidence::measured);
}

Found os_compat_value(const Case& c) {
  const auto reported = parse_os_version(c.capture.system.os);
  if (!reported || reported->major != 16) return {};
  return code(fmt::format("macOS {} is what a program with an older SDK is told on 26",
                          c.capture.system.os),
              Evidence::documented);
}

Found architecture_generic(const Case& c) {
  if (!c.capture.architecture.starts_with("air64_v")) return {};
  return code(fmt::format("architecture '{}' names no chip", c.capture.architecture),
              Evidence::measured);
}

Found foreign_as(const Case& c, std::string_view name) {
  return c.foreign && c.foreign->code == name ? c.foreign : Found{};
}
Found non_apple_gpu(const Case& c) {
  return foreign_as(c, "NON_APPLE_GPU");
}
Found intel_paravirtual(const Case& c) {
  return foreign_as(c, "VM_INTEL_PARAVIRTUAL");
}
Found intel_paravirtual_likely(const Case& c) {
  return foreign_as(c, "VM_INTEL_PARAVIRTUAL_LIKELY");
}

/// A stock device answers no where this one says yes.
Found override_detected(const Case& c) {
  if (const Value tool = c.fact("override.tool"); is_known(tool)) {
    return code(fmt::format("{} announces itself", std::get<std::string>(tool)),
                Evidence::measured);
  }
  if (!c.apple_guest()) return {};
  for (const ParavirtualAnswer& stock : c.tables.paravirtual()) {
    if (stock.answer.value != Value{false}) continue;
    if (c.capture.answer(stock.answer.key) != Value{true}) continue;
    return code(
        fmt::format("{} is yes; stock paravirtual devices answer no", to_string(stock.answer.key)),
        Evidence::inferred);
  }
  return {};
}

Found override_exceeds_host(const Case& c) {
  if (!c.has("OVERRIDE_DETECTED")) return {};
  std::vector<std::string> keys;
  Evidence evidence = Evidence::measured;
  for (const Comparison& row : c.diagnosis.comparisons) {
    if (row.kind != Kind::over_claim) continue;
    keys.push_back(to_string(row.key));
    evidence = weaker(evidence, row.evidence);
  }
  if (keys.empty()) return {};
  return code(fmt::format("{}", fmt::join(keys, ", ")), evidence);
}

Found residency_unsupported(const Case& c) {
  if (!c.fact_is("rset_ok", false)) return {};
  return code("making a residency set failed", c.fact_evidence("rset_ok"));
}

Found override_too_broad(const Case& c) {
  if (!c.has("OVERRIDE_DETECTED")) return {};
  // A probe tries a residency set on any guest; in a log a program did.
  const CapturedFact* residency = c.capture.fact("rset_ok");
  if (residency != nullptr && residency->value == Value{false} &&
      residency->source.kind == CaptureSource::Kind::log) {
    return code("a program was led to make a residency set, and failed", Evidence::measured);
  }
  for (const Comparison* row : families_that(c, Kind::over_claim, {})) {
    const std::int64_t value = row->key.arguments.front();
    if (c.tables.family(value) != nullptr) continue;
    return code(fmt::format("yes to {}, which is no family", value), Evidence::measured);
  }
  for (const std::int64_t metal : {kMetal3, kMetal4}) {
    if (!c.guest() || c.family(metal) != Value{true}) continue;
    return code(fmt::format("{} is claimed in a guest", short_name(c, metal)), Evidence::measured);
  }
  return {};
}

Found default_device_nil(const Case& c) {
  const Value count = c.fact("devices.count");
  const std::int64_t* listed = std::get_if<std::int64_t>(&count);
  if (!c.fact_is("devices.default", false) || listed == nullptr || *listed == 0) return {};
  return code(fmt::format("no default device, but {} listed", *listed), Evidence::measured);
}

Found no_metal_device(const Case& c) {
  if (!c.fact_is("devices.default", false) || c.fact("devices.count") != Value{std::int64_t{0}}) {
    return {};
  }
  return code("MTLCreateSystemDefaultDevice gives nil and MTLCopyAllDevices none",
              Evidence::measured);
}

Found vm_no_apple_family(const Case& c) {
  if (!c.apple_guest() || highest(c, "Apple")) return {};
  const CapturedAnswer* lowest = c.capture.find({"supportsFamily:", {1001}});
  if (lowest == nullptr || lowest->answer.value != Value{false}) return {};
  return code("no Apple family at all", lowest->evidence);
}

Found vm_underreported(const Case& c) {
  if (!c.apple_guest() || c.has("VM_NO_APPLE_FAMILY")) return {};
  const auto rows = families_that(c, Kind::under_report, "Apple");
  if (!rows.empty()) {
    const Evidence evidence = rows.front()->evidence;
    return c.diagnosis.host != nullptr
               ? code(fmt::format("{} of {} denied", names_of(c, rows), c.diagnosis.host->name),
                      evidence)
               : code(fmt::format("{} denied, which every Mac chip of the tables has",
                                  names_of(c, rows)),
                      evidence);
  }
  return {};
}

Found no_metal3(const Case& c) {
  const CapturedAnswer* answer = c.capture.find({"supportsFamily:", {kMetal3}});
  if (!c.apple_guest() || answer == nullptr || answer->answer.value != Value{false}) return {};
  return code("Metal3 denied; to claim it in a guest is a hazard", answer->evidence);
}

Found slow_path_simdgroup(const Case& c) {
  if (c.foreign || (!c.guest() && c.diagnosis.host == nullptr)) return {};
  const bool reduction = c.fact_is("ggml.simdgroup_reduction", false);
  const bool matrix = c.fact_is("ggml.simdgroup_mm", false);
  if (!reduction && !matrix) return {};
  return code(reduction && matrix ? "simdgroup reduction and matrix multiply are off"
              : reduction         ? "simdgroup reduction is off"
                                  : "simdgroup matrix multiply is off",
              Evidence::measured);
}

Found m5_tensor_lost(const Case& c) {
  if (c.guest() || !c.fact_is("ggml.has_tensor", false)) return {};
  if (c.family(kApple10) != Value{true}) return {};
  return code("has tensor = false on a device with Apple10", Evidence::measured);
}

Found shader_compile_failed(const Case& c) {
  if (!c.fact_is("ggml.shader_compile_failed", true)) return {};
  return code("the program's shader did not compile", Evidence::measured);
}

Found bf16_disabled(const Case& c) {
  if (!c.fact_is("ggml.has_bfloat", true) || !c.fact_is("ggml.use_bfloat", false)) return {};
  return code("has bfloat = true, use bfloat = false", Evidence::measured);
}

Found residency_needs_15(const Case& c) {
  if (!c.fact_is("ggml.has_residency_sets", false)) return {};
  return code(
      "has residency sets = false: built without a macOS 15 SDK, or GGML_METAL_NO_RESIDENCY set",
      Evidence::read);
}

Found kernels_skipped(const Case& c) {
  const Value count = c.fact("ggml.kernels_skipped");
  if (!std::holds_alternative<std::int64_t>(count)) return {};
  return code(fmt::format("{} kernels", std::get<std::int64_t>(count)), Evidence::measured);
}

Found unsupported_op(const Case& c) {
  const Value op = c.fact("ggml.unsupported_op");
  if (!std::holds_alternative<std::string>(op)) return {};
  return code(std::get<std::string>(op), Evidence::measured);
}

bool says_nothing_of_the_device(const Case& c) {
  return c.capture.answers.empty() && c.capture.name.empty();
}

Found no_cpu_fallback(const Case& c) {
  // ggml's scheduler hands a backend only what it supports; an operation that arrives
  // unsupported came without one.
  if (!c.has("UNSUPPORTED_OP") || says_nothing_of_the_device(c)) return {};
  return code("the operation reached the device although it is not supported there",
              Evidence::inferred);
}

Found need_init_lines(const Case& c) {
  if (!c.has("UNSUPPORTED_OP") || !says_nothing_of_the_device(c)) return {};
  return code("the lines that describe the device are missing", Evidence::measured);
}

Found silent_fallback(const Case& c) {
  const bool none = c.fact_is("whisper.no_gpu_found", true);
  const bool blas =
      c.fact_is("whisper.blas_backend", true) && !c.fact_is("whisper.metal_backend", true);
  if (!none && !blas) return {};
  return code(none ? "no GPU found, the CPU is used" : "the BLAS backend is used",
              Evidence::measured);
}

Found device_name_missing(const Case& c) {
  if (!c.capture.name.empty() || c.capture.answers.empty()) return {};
  return code("the input does not name the device", Evidence::measured);
}

Found log_truncated(const Case& c) {
  const Value line = c.fact("log.damaged_line");
  if (std::holds_alternative<std::int64_t>(line)) {
    return code(fmt::format("line {} is damaged", std::get<std::int64_t>(line)),
                Evidence::measured);
  }
  if (!c.fact_is("log.cut_short", true)) return {};
  return code("the description of the device ends early", Evidence::measured);
}

Found no_capability_lines(const Case& c) {
  if (!c.capture.answers.empty() || c.has("NEED_INIT_LINES")) return {};
  return code("the input holds no answer of the device", Evidence::measured);
}

struct CodeRule {
  std::string_view code;
  Found (*find)(const Case&);
};

/// In the order of the output; a rule may look at codes above it.
constexpr std::array<CodeRule, 29> kRules{{
    {"VM_DETECTED", vm_detected},
    {"HOST_CHIP_KNOWN", host_chip_known},
    {"OS_VERSION_COMPAT_VALUE", os_compat_value},
    {"VM_ARCHITECTURE_NAME_GENERIC", architecture_generic},
    {"NON_APPLE_GPU", non_apple_gpu},
    {"VM_INTEL_PARAVIRTUAL", intel_paravirtual},
    {"VM_INTEL_PARAVIRTUAL_LIKELY", intel_paravirtual_likely},
    {"OVERRIDE_DETECTED", override_detected},
    {"OVERRIDE_EXCEEDS_HOST", override_exceeds_host},
    {"RESIDENCY_SET_UNSUPPORTED", residency_unsupported},
    {"OVERRIDE_TOO_BROAD", override_too_broad},
    {"NO_METAL_DEVICE", no_metal_device},
    {"DEFAULT_DEVICE_NIL_BUT_ENUMERABLE", default_device_nil},
    {"VM_NO_APPLE_FAMILY", vm_no_apple_family},
    {"VM_APPLE_FAMILY_UNDERREPORTED", vm_underreported},
    {"NO_METAL3_FAMILY", no_metal3},
    {"SLOW_PATH_SIMDGROUP", slow_path_simdgroup},
    {"M5_TENSOR_PATH_LOST", m5_tensor_lost},
    {"SHADER_COMPILE_FAILED", shader_compile_failed},
    {"BF16_DISABLED_AT_BUILD", bf16_disabled},
    {"RESIDENCY_NEEDS_MACOS15", residency_needs_15},
    {"KERNELS_SKIPPED", kernels_skipped},
    {"UNSUPPORTED_OP", unsupported_op},
    {"APP_HAS_NO_CPU_FALLBACK", no_cpu_fallback},
    {"NEED_INIT_LINES", need_init_lines},
    {"SILENT_FALLBACK_TO_CPU", silent_fallback},
    {"DEVICE_NAME_MISSING", device_name_missing},
    {"LOG_TRUNCATED", log_truncated},
    {"NO_CAPABILITY_LINES", no_capability_lines},
}};

/// A verdict word and the codes any of which bring it, the gravest first.
struct Word {
  std::string_view word;
  std::array<std::string_view, 4> codes;
};
constexpr std::array<Word, 9> kWords{{
    {"harmful-override", {"RESIDENCY_SET_UNSUPPORTED"}},  // only beside a broad override, see below
    {"override-active", {"OVERRIDE_DETECTED"}},
    {"no-device-visible", {"NO_METAL_DEVICE"}},
    {"insufficient-data", {"NEED_INIT_LINES"}},
    {"true-hardware-limit", {"NON_APPLE_GPU"}},
    {"mismatch-not-fixable", {"VM_INTEL_PARAVIRTUAL", "VM_INTEL_PARAVIRTUAL_LIKELY"}},
    {"mismatch",
     {"VM_APPLE_FAMILY_UNDERREPORTED", "VM_NO_APPLE_FAMILY", "M5_TENSOR_PATH_LOST",
      "VM_ARCHITECTURE_NAME_GENERIC"}},
    {"build-or-os-setting", {"BF16_DISABLED_AT_BUILD", "RESIDENCY_NEEDS_MACOS15"}},
    {"not-a-capability-problem", {"SILENT_FALLBACK_TO_CPU"}},
}};

bool has_code(const Diagnosis& diagnosis, std::string_view wanted) {
  return std::any_of(diagnosis.codes.begin(), diagnosis.codes.end(),
                     [&](const DiagnosisCode& row) { return row.code == wanted; });
}

bool differs(const Diagnosis& diagnosis) {
  return std::any_of(diagnosis.comparisons.begin(), diagnosis.comparisons.end(),
                     [](const Comparison& row) {
                       return row.kind == Kind::under_report || row.kind == Kind::over_claim;
                     });
}

/// The chip's own family was read and agrees, and no line was lost that may have said otherwise.
bool families_agree(const Tables& tables, const Diagnosis& diagnosis) {
  if (diagnosis.host == nullptr || has_code(diagnosis, "LOG_TRUNCATED")) return false;
  if (!diagnosis.host->family) return false;
  const Family* own = tables.family(*diagnosis.host->family);
  return own != nullptr &&
         std::any_of(diagnosis.comparisons.begin(), diagnosis.comparisons.end(),
                     [&](const Comparison& row) {
                       return row.kind == Kind::agrees &&
                              row.key == QueryKey{"supportsFamily:", {own->value}};
                     });
}

}  // namespace

std::vector<DiagnosisCode> find_codes(const Tables& tables, const Capture& capture,
                                      const Diagnosis& diagnosis) {
  Case c{tables, capture, diagnosis, {}, foreign_device(tables, capture)};
  for (const CodeRule& rule : kRules) {
    if (Found found = rule.find(c)) {
      found->code = rule.code;
      c.codes.push_back(*std::move(found));
    }
  }
  return std::move(c.codes);
}

std::string verdict_of(const Tables& tables, const Capture& capture, const Diagnosis& diagnosis) {
  const bool too_broad = has_code(diagnosis, "OVERRIDE_TOO_BROAD");
  for (const Word& row : kWords) {
    if (row.word == "harmful-override" && !too_broad) continue;
    const bool holds = std::any_of(row.codes.begin(), row.codes.end(), [&](std::string_view name) {
      return !name.empty() && has_code(diagnosis, name);
    });
    if (holds || (row.word == "mismatch" && differs(diagnosis))) return std::string(row.word);
  }
  const bool guest = diagnosis.is_guest == true;
  if (capture.answers.empty()) return guest ? "vm-detected" : "no-capability-data";
  if (guest && diagnosis.host == nullptr) return "vm-detected";
  // Without the families, "no difference" would only mean that nothing was compared.
  if (!families_agree(tables, diagnosis)) return "insufficient-data";
  return guest ? "vm-works" : "healthy";
}

std::vector<std::string> all_codes() {
  std::vector<std::string> codes{"OK"};
  for (const CodeRule& rule : kRules) codes.emplace_back(rule.code);
  return codes;
}

std::vector<std::string> all_verdict_words() {
  std::vector<std::string> words{"healthy", "vm-works", "vm-detected", "no-capability-data"};
  for (const Word& row : kWords) words.emplace_back(row.word);
  return words;
}

}  // namespace metaldoctor
