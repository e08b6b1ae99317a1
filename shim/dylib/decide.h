#pragma once
// The one decision of this library, as a pure function: what is answered in place of the device.
#include <stddef.h>
#include <stdint.h>

namespace metaldoctor::shim {

enum class Callers : uint8_t { all, app };
enum class Scope : uint8_t { process, tree };
/// What the answers were checked against when the profile was made.
enum class Bound : uint8_t { host, none, above_host, unbounded };

inline constexpr const char* kCallersNames[] = {"all", "app"};
inline constexpr const char* kScopeNames[] = {"process", "tree"};
/// `none`: nothing is raised, so nothing had to be bounded. `unbounded`: configured by the
/// variables of another tool, which know no host.
inline constexpr const char* kBoundNames[] = {"host", "none", "above-host", "drop-in, unbounded"};

/// One changed answer.
struct Change {
  uint16_t wire;
  bool at_least;     ///< the larger of `value` and what the device says
  int64_t argument;  ///< 0 if the query has none
  uint64_t value;    ///< 0 or 1 for a BOOL
};

inline constexpr size_t kMaxChanges = 128;

/// What this process answers differently. Changes are sorted by (wire, argument), without
/// duplicates. No changes = only the journal is written.
struct Overrides {
  Callers callers = Callers::all;
  Scope scope = Scope::process;
  Bound bound = Bound::host;
  uint16_t count = 0;
  Change changes[kMaxChanges] = {};
};

/// The changes of one query: a part of Overrides::changes.
struct Range {
  const Change* first = nullptr;
  const Change* last = nullptr;  ///< one past the end
};

constexpr Range changes_of(const Overrides& overrides, uint16_t wire) {
  const Change* first = overrides.changes;
  const Change* end = overrides.changes + overrides.count;
  while (first != end && first->wire != wire) ++first;
  const Change* last = first;
  while (last != end && last->wire == wire) ++last;
  return {first, last};
}

constexpr const Change* find_change(Range range, int64_t argument) {
  for (const Change* change = range.first; change != range.last; ++change) {
    if (change->argument == argument) return change;
  }
  return nullptr;
}

constexpr uint64_t decide(const Change& change, uint64_t stock) {
  return change.at_least && stock > change.value ? stock : change.value;
}

}  // namespace metaldoctor::shim
