#pragma once
// The wire format `metaldoctor-wire 1`: what the injected library and metal-probe write, and
// scanners/device/wire_reader.h reads. Freestanding, because both writers have no C++ library.
//
//   line  := name { TAB field } TAB check LF
//   check := eight lower-case hex digits: FNV-1a (32 bit) of everything before its TAB
//
// Text fields are percent-escaped: bytes outside 0x20..0x7e and '%' are "%XX". Text that was too
// long ends in "%+". A line is written by one write(), so lines of several processes may
// interleave but not mix; a line that was cut, glued or edited fails its check and is not used.
#include <stddef.h>
#include <stdint.h>

namespace metaldoctor::wire {

inline constexpr char kHeader[] = "metaldoctor-wire 1";
inline constexpr char kAnyHeader[] = "metaldoctor-wire ";  ///< of other versions too
inline constexpr size_t kMaxLine = 4096;                   ///< with its LF
inline constexpr size_t kMostQuestions = 512;
inline constexpr size_t kMaxText = 1000;  ///< of one escaped field

enum class Field : uint8_t {
  none,
  text,
  number,    ///< unsigned decimal
  argument,  ///< signed decimal, "-" = the query has none
  truth,     ///< "yes", "no"
  value,     ///< truth, signed decimal, or ' and text
};

struct Record {
  const char* name;
  Field fields[8];
};

/// Every record. Names of the fields, in order:
inline constexpr Record kRecords[] = {
    // producer ("probe", "shim"), its version
    {kHeader, {Field::text, Field::text}},
    // -- the injected library; every record starts with the process id
    // pid, executable
    {"process", {Field::number, Field::text}},
    // pid, origin, state ("active", "stock", "malformed"), changes, bound, callers, scope
    {"profile",
     {Field::number, Field::text, Field::text, Field::number, Field::text, Field::text,
      Field::text}},
    // pid, class, state ("waiting", "installed", "refused"), hooks, reason, selector it is about
    {"install", {Field::number, Field::text, Field::text, Field::number, Field::text, Field::text}},
    // pid, class, query, argument, stock answer, given answer, image of the caller, offset in it;
    // each (query, argument) once, at most kMostQuestions of them
    {"asked",
     {Field::number, Field::text, Field::text, Field::argument, Field::value, Field::value,
      Field::text, Field::number}},
    // -- metal-probe
    // key ("os", "build", "hw_model", "cpu_brand", "is_virtual", "arch"), value
    {"system", {Field::text, Field::value}},
    // count of MTLCopyAllDevices, whether MTLCreateSystemDefaultDevice gave one
    {"devices", {Field::number, Field::truth}},
    // index, class, whether it is the default device
    {"device", {Field::number, Field::text, Field::truth}},
    // device, query, argument, answer
    {"answer", {Field::number, Field::text, Field::argument, Field::value}},
    // device, query, argument, reason
    {"unanswered", {Field::number, Field::text, Field::argument, Field::text}},
    // device, name, value
    {"fact", {Field::number, Field::text, Field::value}},
    // lines before this one
    {"end", {Field::number}},
};

inline constexpr uint32_t kCheckStart = 2166136261u;
constexpr uint32_t check(const char* bytes, size_t size, uint32_t state = kCheckStart) {
  for (size_t i = 0; i < size; ++i) {
    state = (state ^ static_cast<uint8_t>(bytes[i])) * 16777619u;
  }
  return state;
}

/// Builds one line. What does not fit makes finish() return 0: no line rather than a wrong one.
class Line {
 public:
  explicit Line(const char* name) { raw(name); }

  Line& text(const char* value) {
    put('\t');
    escaped(value ? value : "");
    return *this;
  }
  Line& number(uint64_t value) {
    put('\t');
    digits(value);
    return *this;
  }
  Line& integer(int64_t value) {
    put('\t');
    if (value < 0) put('-');
    digits(value < 0 ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value));
    return *this;
  }
  Line& no_argument() {
    put('\t');
    put('-');
    return *this;
  }
  Line& truth(bool value) {
    put('\t');
    raw(value ? "yes" : "no");
    return *this;
  }
  Line& quoted(const char* value) {
    put('\t');
    put('\'');
    escaped(value ? value : "");
    return *this;
  }

  /// Ends the line; the number of bytes in data(), or 0.
  size_t finish() {
    const uint32_t sum = check(bytes_, size_);
    put('\t');
    for (int shift = 28; shift >= 0; shift -= 4) put(hex("0123456789abcdef", sum >> shift));
    put('\n');
    return full_ ? 0 : size_;
  }
  const char* data() const { return bytes_; }

 private:
  static char hex(const char* digits, uint32_t value) { return digits[value & 15]; }
  void put(char c) {
    if (size_ < kMaxLine) {
      bytes_[size_++] = c;
    } else {
      full_ = true;
    }
  }
  void raw(const char* text) {
    while (*text) put(*text++);
  }
  void digits(uint64_t value) {
    char reversed[20];
    size_t n = 0;
    do {
      reversed[n++] = static_cast<char>('0' + value % 10);
      value /= 10;
    } while (value != 0);
    while (n > 0) put(reversed[--n]);
  }
  void escaped(const char* text) {
    const size_t start = size_;
    for (; *text; ++text) {
      if (size_ - start > kMaxText - 5) {  // room for one escape and the mark
        raw("%+");
        return;
      }
      const auto byte = static_cast<uint8_t>(*text);
      if (byte >= 0x20 && byte <= 0x7e && byte != '%') {
        put(*text);
      } else {
        put('%');
        put(hex("0123456789ABCDEF", byte >> 4));
        put(hex("0123456789ABCDEF", byte));
      }
    }
  }

  size_t size_ = 0;
  bool full_ = false;
  char bytes_[kMaxLine];
};

}  // namespace metaldoctor::wire
