#pragma once
#include <cstdint>
#include <string>

namespace metaldoctor {

class Clock {
 public:
  virtual ~Clock() = default;
  /// Seconds since 1970-01-01 00:00 UTC.
  virtual std::int64_t seconds() = 0;
};

/// "2026-12-01T18:14:13Z"
std::string utc_text(std::int64_t seconds);

}  // namespace metaldoctor
