#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "tables/diagnostic.h"

namespace metaldoctor {

static_assert(std::endian::native == std::endian::little, "structures are read in place");

/// Bytes of a file that somebody else keeps in memory.
using Bytes = std::span<const std::uint8_t>;

/// True when [offset, offset + length) lies in a range of `size` bytes; cannot overflow.
constexpr bool fits(std::uint64_t size, std::uint64_t offset, std::uint64_t length) {
  return offset <= size && length <= size - offset;
}

/// Every read checks its bounds; nothing is copied but the value itself.
template <typename T>
std::optional<T> read_at(Bytes bytes, std::uint64_t offset) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (!fits(bytes.size(), offset, sizeof(T))) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

/// Big-endian integers: fat headers and code signatures.
template <typename T>
std::optional<T> read_be(Bytes bytes, std::uint64_t offset) {
  auto value = read_at<T>(bytes, offset);
  if (!value) return value;
  if constexpr (sizeof(T) == 8) return static_cast<T>(__builtin_bswap64(*value));
  if constexpr (sizeof(T) == 4) return static_cast<T>(__builtin_bswap32(*value));
  if constexpr (sizeof(T) == 2) return static_cast<T>(__builtin_bswap16(*value));
  return value;
}

inline std::optional<Bytes> slice(Bytes bytes, std::uint64_t offset, std::uint64_t length) {
  if (!fits(bytes.size(), offset, length)) return std::nullopt;
  return bytes.subspan(offset, length);
}

/// The NUL-terminated string at `offset`; none when it does not end inside `bytes`, or is `limit`
/// bytes or longer. Where many offsets come from a file, a limit keeps them from all naming one
/// string of megabytes.
inline std::optional<std::string_view> cstring_at(Bytes bytes, std::uint64_t offset,
                                                  std::size_t limit = SIZE_MAX) {
  if (offset >= bytes.size()) return std::nullopt;
  const auto* begin = reinterpret_cast<const char*>(bytes.data() + offset);
  const void* end = std::memchr(begin, 0, std::min<std::size_t>(bytes.size() - offset, limit));
  if (!end) return std::nullopt;
  return std::string_view(begin, static_cast<const char*>(end) - begin);
}

/// A name in a fixed field, padded with NULs (segment and section names).
inline std::string_view fixed_name(const char* field, std::size_t size) {
  return {field, strnlen(field, size)};
}

/// Reads LEB128 numbers and strings one after another. After the first read out of bounds, or of a
/// number that does not fit 64 bits, ok() is false and every further read gives 0.
class Cursor {
 public:
  explicit Cursor(Bytes bytes, std::uint64_t offset = 0)
      : bytes_(bytes), offset_(offset), ok_(offset <= bytes.size()) {}

  bool ok() const { return ok_; }
  bool at_end() const { return !ok_ || offset_ >= bytes_.size(); }
  std::uint64_t offset() const { return offset_; }

  std::uint8_t u8() {
    if (at_end()) return fail();
    return bytes_[offset_++];
  }

  std::uint64_t uleb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      if (at_end()) return fail();
      const std::uint8_t byte = bytes_[offset_++];
      const std::uint64_t bits = byte & 0x7f;
      if (shift == 63 && bits > 1) return fail();
      value |= bits << shift;
      if (!(byte & 0x80)) return value;
    }
    return fail();
  }

  std::int64_t sleb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      if (at_end()) return fail();
      const std::uint8_t byte = bytes_[offset_++];
      value |= std::uint64_t{byte & 0x7fu} << shift;
      if (!(byte & 0x80)) {
        if ((byte & 0x40) && shift + 7 < 64) value |= ~std::uint64_t{0} << (shift + 7);
        return static_cast<std::int64_t>(value);
      }
    }
    return fail();
  }

  std::string_view cstring() {
    const auto text = ok_ ? cstring_at(bytes_, offset_) : std::nullopt;
    if (!text) {
      fail();
      return {};
    }
    offset_ += text->size() + 1;
    return *text;
  }

 private:
  std::uint8_t fail() {
    ok_ = false;
    return 0;
  }

  Bytes bytes_;
  std::uint64_t offset_;
  bool ok_;
};

/// "file (arm64): offset 0x1f0" and what was wrong there.
tl::unexpected<Diagnostic> malformed(std::string_view code, const std::string& where,
                                     std::uint64_t offset, std::string what);

}  // namespace metaldoctor
