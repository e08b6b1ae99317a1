#pragma once
// The text form of a profile: read by the injected library, written by shim/wire_profile.h.
#include "shim/dylib/decide.h"
#include "shim/profile_text/query.h"

namespace metaldoctor::shim {

// A profile as text, in the section __TEXT,__mdprofile and in METALDOCTOR_PROFILE:
//
//   mdp1;<callers>;<scope>;<bound>;{<wire>[:<argument>]=<value>;}.
//   mdp1;all;process;host;1:1006=1;1:1007=1;.
//
// There is one spelling of each profile: changes sorted by (wire, argument), decimal numbers
// without leading zeros, nothing after the final '.'. Anything else is malformed, so that a text
// that was cut cannot mean something smaller.
inline constexpr char kProfileMark[] = "mdp1;";
/// What the section of an unspecialised library starts with. Other versions have other marks.
inline constexpr char kTemplateMark[] = "mdtemplate1;";
inline constexpr size_t kSectionSize = 2048;  ///< padded with NULs
inline constexpr int64_t kMaxArgument = int64_t{1} << 53;

/// Total: any bytes give true and a valid `out`, or false and an untouched one.
bool parse_overrides(const char* text, size_t size, Overrides& out);

/// A text that is read once from left to right; every step says whether it could be taken.
class Reader {
 public:
  Reader(const char* text, size_t size) : at_(text), end_(text + size) {}

  bool at_end() const { return at_ == end_; }
  bool take(const char* word) {
    const size_t n = length(word);
    if (static_cast<size_t>(end_ - at_) < n || !same(at_, n, word)) return false;
    at_ += n;
    return true;
  }
  /// Canonical decimal: no sign, no leading zero, within 64 bits.
  bool number(uint64_t& out) {
    const char* const start = at_;
    uint64_t value = 0;
    for (; at_ != end_ && *at_ >= '0' && *at_ <= '9'; ++at_) {
      if (__builtin_mul_overflow(value, uint64_t{10}, &value) ||
          __builtin_add_overflow(value, static_cast<uint64_t>(*at_ - '0'), &value)) {
        return false;
      }
    }
    out = value;
    return at_ != start && (*start != '0' || at_ == start + 1);
  }
  bool argument(int64_t& out) {
    const bool negative = take("-");
    uint64_t magnitude = 0;
    if (!number(magnitude) || magnitude > static_cast<uint64_t>(kMaxArgument)) return false;
    if (negative && magnitude == 0) return false;
    out = negative ? -static_cast<int64_t>(magnitude) : static_cast<int64_t>(magnitude);
    return true;
  }
  /// One of the names, then ';'.
  template <typename E, size_t N>
  bool one_of(const char* const (&names)[N], size_t count, E& out) {
    for (size_t i = 0; i < count; ++i) {
      if (take(names[i])) {
        out = static_cast<E>(i);
        return take(";");
      }
    }
    return false;
  }

 private:
  const char* at_;
  const char* end_;
};

}  // namespace metaldoctor::shim
