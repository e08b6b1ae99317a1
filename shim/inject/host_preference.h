#pragma once
// The preference of the Mac that runs the guests: com.apple.gpusw.ParavirtualizedGraphics,
// ForceUnrestrictedDeviceFeatureLevel. Read and written with defaults(1).
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shim/inject/change_set.h"
#include "shim/inject/process_runner.h"
#include "tables/evidence.h"

namespace metaldoctor {

inline constexpr std::string_view kPreferenceDomain = "com.apple.gpusw.ParavirtualizedGraphics";
inline constexpr std::string_view kPreferenceKey = "ForceUnrestrictedDeviceFeatureLevel";

/// What is known of it, one claim a line.
struct PreferenceFact {
  std::string_view text;
  Evidence evidence;
  std::string_view source;
};
const std::vector<PreferenceFact>& preference_facts();

/// How each product stops and starts a guest: it must be stopped before the preference counts.
struct VmProduct {
  std::string_view name, stop, start;
};
const std::vector<VmProduct>& vm_products();

/// "1", "0", or none where it is not set. An error is anything else that `defaults` says.
Result<std::optional<std::string>> read_preference(ProcessRunner& runner);

/// The commands that set it to `wanted`, and those that put `before` back.
ChangePlan preference_plan(bool wanted, const std::optional<std::string>& before);

}  // namespace metaldoctor
