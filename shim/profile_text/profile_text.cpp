#include "shim/profile_text/profile_text.h"

namespace metaldoctor::shim {
namespace {

bool before(const Change& a, const Change& b) {
  return a.wire != b.wire ? a.wire < b.wire : a.argument < b.argument;
}

/// wire[:argument]=value;
bool read_change(Reader& in, Change& out) {
  uint64_t wire = 0;
  if (!in.number(wire)) return false;
  const Query* query = find_query(wire);
  if (!query) return false;
  out = {query->wire, false, 0, 0};
  if (query->has_argument && !(in.take(":") && in.argument(out.argument))) return false;
  if (!in.take("=") || !in.number(out.value)) return false;
  return !(query->is_boolean && out.value > 1) && in.take(";");
}

}  // namespace

bool parse_overrides(const char* text, size_t size, Overrides& out) {
  Reader in(text, size);
  Overrides read;
  if (!in.take(kProfileMark) || !in.one_of(kCallersNames, 2, read.callers) ||
      !in.one_of(kScopeNames, 2, read.scope) || !in.one_of(kBoundNames, 3, read.bound)) {
    return false;
  }
  while (!in.take(".")) {
    if (read.count == kMaxChanges) return false;
    Change& change = read.changes[read.count];
    if (!read_change(in, change)) return false;
    if (read.count > 0 && !before(read.changes[read.count - 1], change)) return false;
    ++read.count;
  }
  if (!in.at_end()) return false;
  out = read;
  return true;
}

}  // namespace metaldoctor::shim
