#include "tables/os_version.h"

#include <array>
#include <charconv>

namespace metaldoctor {

std::optional<OsVersion> parse_os_version(std::string_view text) {
  constexpr int kLargest = 9999;  // far beyond any release; keeps arithmetic on parts safe
  std::array<int, 3> parts{};
  std::size_t count = 0;
  for (const std::string_view word : {"macOS ", "Mac OS X ", "Version "}) {
    if (text.starts_with(word)) text.remove_prefix(word.size());
  }
  const char* at = text.data();
  const char* const end = at + text.size();
  while (count < parts.size()) {
    const auto [stop, error] = std::from_chars(at, end, parts[count]);
    if (error != std::errc{} || *at == '-' || parts[count] > kLargest) return std::nullopt;
    ++count;
    at = stop;
    if (count == parts.size() || at == end || *at != '.') break;
    ++at;
  }
  if (at != end && *at != ' ') return std::nullopt;
  return OsVersion{parts[0], parts[1], parts[2]};
}

OsVersion true_macos(OsVersion told) {
  if (told.major == 16) told.major = 26;
  return told;
}

std::string to_string(OsVersion version) {
  std::string text = std::to_string(version.major) + '.' + std::to_string(version.minor);
  if (version.patch != 0) text += '.' + std::to_string(version.patch);
  return text;
}

OsKnowledge::Reach OsKnowledge::reaches(OsVersion introduced) const {
  if (exact) return *exact >= introduced ? Reach::yes : Reach::no;
  if (at_least && *at_least >= introduced) return Reach::yes;
  return assumed >= introduced ? Reach::assumed_yes : Reach::no;
}

}  // namespace metaldoctor
