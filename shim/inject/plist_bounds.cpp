#include "shim/inject/plist_bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace metaldoctor {
namespace {

/// Containers are counted, not followed: a comment or a CDATA section may hold anything that looks
/// like an end. So many opened ones are at most so deep.
constexpr std::size_t kMostXmlContainers = 4096;

std::size_t occurrences(std::string_view text, std::string_view word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + word.size())) {
    ++count;
  }
  return count;
}

/// libplist asserts that a text has no NUL: in XML as it stands, or as a character reference.
bool has_nul(std::string_view text) {
  if (text.find('\0') != text.npos) return true;
  for (std::size_t at = text.find("&#"); at != text.npos; at = text.find("&#", at + 2)) {
    std::size_t digit = at + 2;
    if (digit < text.size() && (text[digit] == 'x' || text[digit] == 'X')) ++digit;
    digit = text.find_first_not_of('0', digit);
    if (digit == text.npos || text[digit] == ';') return true;
  }
  return false;
}

std::string check_xml(std::string_view text, const PlistLimits& limits) {
  if (has_nul(text)) return "a text of it holds a NUL";
  const std::size_t containers = occurrences(text, "<array") + occurrences(text, "<dict");
  if (containers > kMostXmlContainers) {
    return fmt::format("it has {} arrays and dictionaries, more than {}", containers,
                       kMostXmlContainers);
  }
  const auto tags = static_cast<std::size_t>(std::ranges::count(text, '<'));
  if (tags > 2 * limits.values) {
    return fmt::format("it has {} tags, more than {}", tags, 2 * limits.values);
  }
  return {};
}

/// Walks a binary property list (CFBinaryPList.c) and adds up what it holds when every reference is
/// written out, which is what libplist does. An object is visited once.
class BinaryWalk {
 public:
  BinaryWalk(std::string_view bytes, const PlistLimits& limits) : bytes_(bytes), limits_(limits) {}

  std::string check() {
    constexpr std::size_t kTrailer = 32;
    if (bytes_.size() < kBinaryPlist.size() + kTrailer) return "it is cut short";
    const std::size_t trailer = bytes_.size() - kTrailer;
    offset_size_ = number(trailer + 6, 1);
    reference_size_ = number(trailer + 7, 1);
    const std::uint64_t count = number(trailer + 8, 8), top = number(trailer + 16, 8);
    table_ = number(trailer + 24, 8);
    const bool sizes_fit =
        offset_size_ >= 1 && offset_size_ <= 8 && reference_size_ >= 1 && reference_size_ <= 8;
    if (!sizes_fit || count > limits_.values || top >= count || table_ > trailer ||
        count * offset_size_ > trailer - table_) {
      return fmt::format("its trailer does not fit, or names more than {} values", limits_.values);
    }
    objects_.resize(count);
    visit(top, 1);
    return std::move(problem_);
  }

 private:
  struct Object {
    enum class State : std::uint8_t { fresh, open, done } state = State::fresh;
    std::uint64_t cost = 0;
    std::size_t height = 0;
  };

  std::uint64_t number(std::uint64_t at, std::uint64_t size) const {
    std::uint64_t value = 0;
    for (std::uint64_t i = 0; i < size; ++i) {
      value = value << 8 | static_cast<unsigned char>(bytes_[at + i]);
    }
    return value;
  }

  bool fail(std::string what) {
    if (problem_.empty()) problem_ = std::move(what);
    return false;
  }

  /// The count behind a marker, and where the contents begin.
  bool read_count(std::uint64_t& at, std::uint64_t& count) {
    const auto marker = static_cast<unsigned char>(bytes_[at++]);
    count = marker & 15;
    if (count != 15) return true;
    if (at >= table_) return fail("a count is cut short");
    const auto width = static_cast<unsigned char>(bytes_[at++]);
    const std::uint64_t size = std::uint64_t{1} << (width & 15);
    if ((width & 0xf0) != 0x10 || size > 8 || size > table_ - at) {
      return fail("a count is cut short");
    }
    count = number(at, size);
    at += size;
    return true;
  }

  bool children(Object& object, std::uint64_t at, std::uint64_t count, std::size_t depth) {
    if (count > bytes_.size() || count * reference_size_ > table_ - at) {
      return fail("a container is longer than the file");
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t child = number(at + i * reference_size_, reference_size_);
      if (child >= objects_.size()) return fail("a reference leads nowhere");
      if (!visit(child, depth + 1)) return false;
      object.height = std::max(object.height, objects_[child].height + 1);
      object.cost += objects_[child].cost;
      if (object.cost > limits_.expanded) {
        return fail(fmt::format("written out it has more than {} bytes", limits_.expanded));
      }
    }
    return true;
  }

  bool visit(std::uint64_t index, std::size_t depth) {
    Object& object = objects_[index];
    if (depth > limits_.depth || depth + object.height > limits_.depth) {
      return fail(fmt::format("it is nested more than {} deep", limits_.depth));
    }
    if (object.state == Object::State::open) return fail("a container holds itself");
    if (object.state == Object::State::done) return true;
    object.state = Object::State::open;
    std::uint64_t at = number(table_ + index * offset_size_, offset_size_);
    if (at < kBinaryPlist.size() || at >= table_) return fail("a value lies outside the file");
    const unsigned kind = static_cast<unsigned char>(bytes_[at]) >> 4;
    std::uint64_t count = 0;
    object.cost = kValueCost;
    const bool is_container = kind == 0xa || kind == 0xc || kind == 0xd;
    const bool is_long = kind == 4 || kind == 5 || kind == 6;
    if ((is_container || is_long) && !read_count(at, count)) return false;
    if (is_long) {
      if (count > (table_ - at) / (kind == 6 ? 2 : 1)) return fail("a text is cut short");
      object.cost += count * 3;
      const std::size_t unit = kind == 4 ? 0 : kind == 6 ? 2 : 1;  // data may hold any byte
      for (std::uint64_t i = 0; unit != 0 && i < count; ++i) {
        if (number(at + i * unit, unit) == 0) return fail("a text of it holds a NUL");
      }
    }
    const bool whole =
        !is_container || children(object, at, kind == 0xd ? 2 * count : count, depth);
    object.state = Object::State::done;
    return whole;
  }

  static constexpr std::uint64_t kValueCost = 64;  ///< what libplist keeps for any value
  std::string_view bytes_;
  const PlistLimits& limits_;
  std::uint64_t offset_size_ = 0, reference_size_ = 0, table_ = 0;
  std::vector<Object> objects_;
  std::string problem_;
};

}  // namespace

std::string exceeds_bounds(std::string_view bytes, const PlistLimits& limits) {
  if (bytes.size() > limits.bytes) {
    return fmt::format("it has {} bytes, more than {}", bytes.size(), limits.bytes);
  }
  return bytes.starts_with(kBinaryPlist) ? BinaryWalk(bytes, limits).check()
                                         : check_xml(bytes, limits);
}

}  // namespace metaldoctor
