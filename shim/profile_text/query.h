#pragma once
#include <stddef.h>
#include <stdint.h>

namespace metaldoctor::shim {

constexpr size_t length(const char* text) {
  size_t n = 0;
  while (text[n]) ++n;
  return n;
}
/// Whether the `size` bytes at `a` are exactly `text`.
constexpr bool same(const char* a, size_t size, const char* text) {
  for (size_t i = 0; i < size; ++i) {
    if (text[i] == 0 || a[i] != text[i]) return false;
  }
  return text[size] == 0;
}

/// A question whose answer can be changed. The text lies in the row, not behind a pointer: a
/// pointer would have to be fixed up by dyld, in a page of its own.
struct Query {
  uint16_t wire;      ///< stable number in profiles
  bool is_boolean;    ///< else an integer of 64 bits
  bool has_argument;  ///< one integer of 64 bits
  char selector[48];
};

inline constexpr Query kQueries[] = {
#include "shim_queries.inc"  // generated from tables/data/queries.json
};
inline constexpr size_t kQueryCount = sizeof(kQueries) / sizeof(kQueries[0]);

constexpr const Query* find_query(uint64_t wire) {
  for (const Query& query : kQueries) {
    if (query.wire == wire) return &query;
  }
  return nullptr;
}
constexpr uint16_t wire_of(const char* selector) {
  for (const Query& query : kQueries) {
    if (same(selector, length(selector), query.selector)) return query.wire;
  }
  return 0;
}

}  // namespace metaldoctor::shim
