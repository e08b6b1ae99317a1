#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace metaldoctor {

/// Readers of the values that log lines carry. Blanks are collapsed already. Each takes the whole
/// text after the item's key and gives nothing when any of it is not as the program writes it.

std::optional<bool> log_bool(std::string_view text);             ///< "= true"
std::optional<std::int64_t> log_integer(std::string_view text);  ///< "= 1"
/// "= 11453.25 MB" -> "11453.25"; a decimal comma of a locale becomes a point.
std::optional<std::string> log_megabytes(std::string_view text);
std::optional<std::string> log_quoted(std::string_view text);   ///< "'RMS_NORM'"
std::optional<std::string> log_skipped(std::string_view text);  ///< "kernel_x (not supported)"

/// Apple's prefix of every family's name; no other line of these logs holds it.
inline constexpr std::string_view kFamilyPrefix = "MTLGPUFamily";

struct LogFamily {
  std::string_view line;  ///< "Apple"
  std::int64_t value = 0;
};
/// "MTLGPUFamilyApple7 (1007)"; the number of the name must fit the value.
std::optional<LogFamily> log_family(std::string_view text);
/// The line's name from as much as is left of such a text: "MTLGPUFamilyApple7 (10" -> "Apple".
std::string_view log_family_line(std::string_view text);

struct LogDevice {
  std::string id;    ///< ggml's own: "MTL0"; may be empty
  std::string name;  ///< MTLDevice.name; empty = not printed
};
/// "Apple M1", "MTL0 (Apple M1)", "MTL0". A bare text has no end mark, so it is only taken from a
/// line that has one.
std::optional<LogDevice> log_device(std::string_view text, bool terminated);
/// "MTL0 (Apple M4) (unknown id) - 12123 MiB free", "Metal (Apple M1)"; a device that is not one
/// of Metal gives an empty LogDevice.
std::optional<LogDevice> log_used_device(std::string_view text);
std::optional<std::string> log_parenthesised(std::string_view text);  ///< "(Apple M1 (Virtual))"

struct LogBanner {
  std::string program;
  std::vector<std::pair<std::string, std::int64_t>> settings;
};
/// "llama-bench (appleFamilyMax=1009 maxThreadgroupMemory=65536)"
std::optional<LogBanner> log_banner(std::string_view text);

/// Valid UTF-8 without control characters, at most 256 bytes: fit to be printed.
bool is_printable(std::string_view text);

}  // namespace metaldoctor
