#include "scanners/device/log_values.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace metaldoctor {
namespace {

constexpr std::size_t kLongestText = 256;
constexpr std::size_t kMostSettings = 32;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

std::optional<std::int64_t> integer(std::string_view text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

/// What follows "= ".
std::optional<std::string_view> assigned(std::string_view text) {
  if (!text.starts_with("= ")) return std::nullopt;
  return text.substr(2);
}

/// "MTL0", "MTL1", "Metal": how ggml names its devices
bool is_ggml_id(std::string_view text) {
  if (text == "Metal") return true;
  if (!text.starts_with("MTL") || text.size() < 4) return false;
  return std::all_of(text.begin() + 3, text.end(), is_digit);
}

/// The length of the "(...)" that starts the text, its own parentheses balanced; 0 = there is none.
std::size_t balanced(std::string_view text) {
  if (!text.starts_with('(')) return 0;
  std::size_t depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')' && --depth == 0) return i + 1;
  }
  return 0;
}

/// Bytes of the UTF-8 sequence that starts `text`; 0 = malformed (RFC 3629).
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and what lies above U+10FFFF.
  const bool bad = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) > 0x9f) ||
                   (lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) > 0x8f);
  return bad ? 0 : length;
}

}  // namespace

bool is_printable(std::string_view text) {
  if (text.empty() || text.size() > kLongestText) return false;
  while (!text.empty()) {
    const auto lead = static_cast<unsigned char>(text.front());
    const std::size_t length = utf8_length(text);
    if (length == 0 || lead < 0x20 || lead == 0x7f) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::optional<bool> log_bool(std::string_view text) {
  if (text == "= true") return true;
  if (text == "= false") return false;
  return std::nullopt;
}

std::optional<std::int64_t> log_integer(std::string_view text) {
  const auto value = assigned(text);
  return value ? integer(*value) : std::nullopt;
}

std::optional<std::string> log_megabytes(std::string_view text) {
  const auto value = assigned(text);
  if (!value || !value->ends_with(" MB")) return std::nullopt;
  std::string number(value->substr(0, value->size() - 3));
  std::replace(number.begin(), number.end(), ',', '.');
  const std::size_t point = number.find('.');
  if (point == 0 || point == std::string::npos || number.size() != point + 3 || point > 12) {
    return std::nullopt;
  }
  number.erase(point, 1);
  if (!std::all_of(number.begin(), number.end(), is_digit)) return std::nullopt;
  number.insert(point, 1, '.');
  return number;
}

std::optional<std::string> log_quoted(std::string_view text) {
  if (text.size() < 3 || text.front() != '\'' || text.back() != '\'') return std::nullopt;
  text = text.substr(1, text.size() - 2);
  if (text.find('\'') != std::string_view::npos || !is_printable(text)) return std::nullopt;
  return std::string(text);
}

std::optional<std::string> log_skipped(std::string_view text) {
  constexpr std::string_view kEnd = " (not supported)";
  if (!text.ends_with(kEnd)) return std::nullopt;
  text.remove_suffix(kEnd.size());
  if (text.empty() || !std::all_of(text.begin(), text.end(), is_word)) return std::nullopt;
  return std::string(text);
}

std::string_view log_family_line(std::string_view text) {
  const std::size_t at = text.find(kFamilyPrefix);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + kFamilyPrefix.size());
  const std::size_t end = text.find_first_of("0123456789");
  // Without its number the name may have been cut: "Mac" of "MacCatalyst".
  return end == std::string_view::npos ? std::string_view{} : text.substr(0, end);
}

std::optional<LogFamily> log_family(std::string_view text) {
  const std::string_view line = log_family_line(text);
  if (line.empty() || !text.starts_with(kFamilyPrefix)) return std::nullopt;
  text.remove_prefix(kFamilyPrefix.size() + line.size());
  const std::size_t open = text.find(" (");
  if (open == std::string_view::npos || !text.ends_with(')')) return std::nullopt;
  const auto ordinal = integer(text.substr(0, open));
  const auto value = integer(text.substr(open + 2, text.size() - open - 3));
  if (!ordinal || !value) return std::nullopt;
  // Apple1 is 1001 and Common1 is 3001, but Metal3 is 5001: MTLGPUFamily has no Metal1.
  const std::int64_t first = line == "Metal" ? 3 : 1;
  if (*value % 1000 != *ordinal - first + 1) return std::nullopt;
  return LogFamily{line, *value};
}

std::optional<std::string> log_parenthesised(std::string_view text) {
  const std::size_t end = balanced(text);
  if (end == 0 || end != text.size() || !is_printable(text.substr(1, end - 2))) {
    return std::nullopt;
  }
  return std::string(text.substr(1, end - 2));
}

std::optional<LogDevice> log_used_device(std::string_view text) {
  const std::size_t space = text.find(' ');
  if (!is_ggml_id(text.substr(0, space))) return LogDevice{};
  if (space == std::string_view::npos) return std::nullopt;
  const std::string_view rest = text.substr(space + 1);
  auto name = log_parenthesised(rest.substr(0, balanced(rest)));
  if (!name) return std::nullopt;
  return LogDevice{std::string(text.substr(0, space)), *std::move(name)};
}

std::optional<LogDevice> log_device(std::string_view text, bool terminated) {
  const std::size_t space = text.find(' ');
  const std::string_view id = text.substr(0, space);
  if (is_ggml_id(id) && space != std::string_view::npos) {
    auto name = log_parenthesised(text.substr(space + 1));
    if (!name) return std::nullopt;
    return LogDevice{std::string(id), *std::move(name)};
  }
  if (!terminated || !is_printable(text)) return std::nullopt;
  return is_ggml_id(id) ? LogDevice{std::string(id), {}} : LogDevice{{}, std::string(text)};
}

std::optional<LogBanner> log_banner(std::string_view text) {
  const std::size_t open = text.rfind(" (");
  if (open == std::string_view::npos || !text.ends_with(')')) return std::nullopt;
  LogBanner banner{std::string(text.substr(0, open)), {}};
  if (!is_printable(banner.program)) return std::nullopt;
  std::string_view rest = text.substr(open + 2, text.size() - open - 3);
  while (!rest.empty() && banner.settings.size() < kMostSettings) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    const std::string_view setting = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::size_t equals = setting.find('=');
    if (equals == std::string_view::npos || equals == 0) return std::nullopt;
    const std::string_view name = setting.substr(0, equals);
    const auto value = integer(setting.substr(equals + 1));
    if (!value || !std::all_of(name.begin(), name.end(), is_word)) return std::nullopt;
    banner.settings.emplace_back(name, *value);
  }
  return banner;
}

}  // namespace metaldoctor
