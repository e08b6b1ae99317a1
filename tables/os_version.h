#pragma once
#include <compare>
#include <optional>
#include <string>
#include <string_view>

namespace metaldoctor {

/// A macOS version. "26.5.2 (25F84)", "macOS 26.5.2" and "Version 26.5.2 (Build 25F84)" parse to
/// 26.5.2: what follows the numbers is ignored only when it starts with a space.
struct OsVersion {
  int major = 0;
  int minor = 0;
  int patch = 0;
  friend auto operator<=>(const OsVersion&, const OsVersion&) = default;
};

std::optional<OsVersion> parse_os_version(std::string_view text);
/// 16.x, which programs built with an SDK older than 26 are told on macOS 26.x, as 26.x.
OsVersion true_macos(OsVersion told);
std::string to_string(OsVersion version);  ///< "26.5.2", "26.5", "26.0"

/// What is known of the guest's OS. `assumed` (the newest OS of the tables) is used where nothing
/// else is known, and every conclusion that needed it is `inferred`.
struct OsKnowledge {
  std::optional<OsVersion> exact;     ///< from the input or --os
  std::optional<OsVersion> at_least;  ///< a lower bound that the input proves
  OsVersion assumed;

  enum class Reach { yes, no, assumed_yes };
  /// Whether an API introduced in `introduced` is there.
  Reach reaches(OsVersion introduced) const;
};

}  // namespace metaldoctor
