#pragma once
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tables/diagnostic.h"

namespace metaldoctor {

/// A value that a device, a file or an expression gives. monostate = unknown, which is never false.
using Value = std::variant<std::monostate, bool, std::int64_t, std::string>;

inline bool is_known(const Value& value) {
  return !std::holds_alternative<std::monostate>(value);
}
/// "yes", "no", "32768", "'Apple M1'", "unknown".
std::string to_string(const Value& value);

/// One question to a device: a canonical selector and its integer arguments.
/// Nested getters are dotted: "architecture.name".
struct QueryKey {
  std::string query;
  std::vector<std::int64_t> arguments;
  friend auto operator<=>(const QueryKey&, const QueryKey&) = default;
};

/// "supportsFamily:1007", "maxThreadgroupMemoryLength". Arguments are joined with ','.
std::string to_string(const QueryKey& key);
/// The inverse: "supportsFamily:1007". Does not resolve aliases; Tables::canonical() does.
Result<QueryKey> parse_query_key(std::string_view text);

struct Answer {
  QueryKey key;
  Value value;
  friend bool operator==(const Answer&, const Answer&) = default;
};

/// The command-line form QUERY[:ARG]=VALUE; VALUE is yes, no or a decimal integer.
Result<Answer> parse_answer(std::string_view text);

}  // namespace metaldoctor
