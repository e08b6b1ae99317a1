#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scanners/diagnose/codes.h"
#include "scanners/diagnose/diagnose.h"
#include "tables/host_answers.h"

namespace metaldoctor {
namespace {

// The paravirtual device of an Intel Mac's guest is given 1 GiB, whatever the guest's memory.
constexpr std::int64_t kIntelGuestBytes = std::int64_t{1} << 30;
constexpr std::string_view kIntelGuestMegabytes = "1073.74";

bool is_paravirtual_name(std::string_view name) {
  return name.find("Paravirtual") != std::string_view::npos;
}

// Words of the brand strings of PCs and Intel Macs. A brand without one is not known: nothing
// follows from it.
constexpr std::array<std::string_view, 6> kOtherCpus{"Intel", "AMD", "Xeon",
                                                     "QEMU",  "KVM", "Virtual CPU"};
constexpr std::array<std::string_view, 8> kOtherGpus{"AMD",    "Radeon",  "Intel",  "Iris",
                                                     "NVIDIA", "GeForce", "Quadro", "FirePro"};

template <std::size_t N>
bool has_one_of(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::ranges::any_of(words,
                             [&](std::string_view word) { return text.find(word) != text.npos; });
}

/// "VirtualApple @ 2.50GHz" is what Rosetta shows.
bool is_other_cpu(std::string_view brand) {
  return brand.find("Apple") == std::string_view::npos && has_one_of(brand, kOtherCpus);
}

bool lacks_unified_memory(const Tables& tables, const Capture& capture) {
  const QueryKey unified{"hasUnifiedMemory", {}};
  const auto on_macs = any_host_answer(tables, unified);
  return on_macs && on_macs->answer.value == Value{true} && capture.answer(unified) == Value{false};
}

bool has_intel_guest_memory(const Capture& capture) {
  if (capture.answer({"hasUnifiedMemory", {}}) == Value{true}) return false;
  if (capture.answer({"recommendedMaxWorkingSetSize", {}}) == Value{kIntelGuestBytes}) return true;
  const CapturedFact* logged = capture.fact("recommended_working_set_mb");
  return logged != nullptr && logged->value == Value{std::string(kIntelGuestMegabytes)};
}

DiagnosisCode row(std::string_view code, std::string detail, Evidence evidence) {
  return {std::string(code), std::move(detail), evidence};
}

}  // namespace

std::optional<DiagnosisCode> foreign_device(const Tables& tables, const Capture& capture) {
  const std::string& name = capture.name;
  if (!name.empty() && !name.starts_with("Apple ") && !is_paravirtual_name(name)) {
    return row("NON_APPLE_GPU", fmt::format("device '{}'", name),
               has_one_of(name, kOtherGpus) ? Evidence::measured : Evidence::inferred);
  }
  const std::optional<bool> guest = capture.is_guest();
  if (const std::string& brand = capture.system.cpu_brand; is_other_cpu(brand)) {
    return guest == true
               ? row("VM_INTEL_PARAVIRTUAL", fmt::format("CPU '{}'", brand), Evidence::measured)
               : row("NON_APPLE_GPU", fmt::format("CPU '{}'", brand), Evidence::inferred);
  }
  // The name of a real Apple GPU outweighs a number that does not fit it.
  if (guest == false) return std::nullopt;
  if (lacks_unified_memory(tables, capture)) {
    if (guest != true) {
      return row("NON_APPLE_GPU", "no unified memory, which every Apple GPU has",
                 Evidence::inferred);
    }
    return row("VM_INTEL_PARAVIRTUAL_LIKELY",
               "a paravirtual device without unified memory: the guest of an Intel Mac",
               Evidence::inferred);
  }
  if (guest == true && has_intel_guest_memory(capture)) {
    return row("VM_INTEL_PARAVIRTUAL_LIKELY",
               "a paravirtual device with a working set of 1 GiB: the guest of an Intel Mac",
               Evidence::inferred);
  }
  return std::nullopt;
}

std::optional<std::string> not_overridable(const Tables& tables, const Capture& capture) {
  if (const auto foreign = foreign_device(tables, capture)) {
    return fmt::format("{} ({})",
                       foreign->code == "NON_APPLE_GPU"
                           ? "the GPU is not one of Apple's"
                           : "the guest runs on an Intel Mac, whose GPU is not one of Apple's",
                       foreign->detail);
  }
  const bool shows_a_device =
      !capture.answers.empty() || !capture.name.empty() || !capture.architecture.empty();
  if (shows_a_device || capture.is_guest() == true) return std::nullopt;
  return capture.fact("whisper.no_gpu_found") ? "the program found no GPU"
                                              : "the input shows no Metal device";
}

}  // namespace metaldoctor
