#include "scanners/device/log_lines.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "scanners/device/log_values.h"

namespace metaldoctor {
namespace {

/// The longest line that any of the grammars writes is far shorter; a longer one is damage.
constexpr std::size_t kLongestLine = 4096;
constexpr std::size_t kLongestTime = 40;

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

std::string_view trim_front(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  return text;
}

/// Removes ECMA-48 control sequences: ESC [ parameters final-byte.
std::string without_colours(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\x1b' || i + 1 >= text.size() || text[i + 1] != '[') {
      plain += text[i];
      continue;
    }
    i += 2;
    while (i < text.size() && (text[i] < '\x40' || text[i] > '\x7e')) ++i;
  }
  return plain;
}

std::string collapsed(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (!is_blank(c)) {
      out += c;
    } else if (!out.empty() && out.back() != ' ') {
      out += ' ';
    }
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

constexpr std::array<std::string_view, 14> kLevels{
    "I", "W", "E", "D", "T", "V", "F", "N", "INFO", "WARN", "ERROR", "DEBUG", "TRACE", "|"};

/// "0.00.046.678", "12:41:47.024", "2024-07-22T10:00:00.123Z", "[17:03:22]"
bool is_time(std::string_view token) {
  if (token.size() > kLongestTime) return false;
  const bool digits =
      std::any_of(token.begin(), token.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  return digits && token.find_first_not_of("0123456789:.,-+/TZ[]()") == std::string_view::npos;
}

/// "llama-bench[2738:54808]", as NSLog writes it
bool is_process(std::string_view token) {
  if (token.ends_with(':')) token.remove_suffix(1);
  const std::size_t open = token.find('[');
  if (open == 0 || open == std::string_view::npos || !token.ends_with(']')) return false;
  const std::string_view ids = token.substr(open + 1, token.size() - open - 2);
  return !ids.empty() && ids.find_first_not_of("0123456789:") == std::string_view::npos;
}

bool is_level(std::string_view token) {
  if (token.starts_with('[') && token.ends_with(']')) token = token.substr(1, token.size() - 2);
  if (token.ends_with(':')) token.remove_suffix(1);
  return std::find(kLevels.begin(), kLevels.end(), token) != kLevels.end();
}

/// The tokens before a prefix, digits as 0 and levels as L, so that lines can be compared.
std::string shape_of(std::string_view token) {
  if (is_level(token)) return "L ";
  std::string shape(token);
  std::replace_if(
      shape.begin(), shape.end(), [](unsigned char c) { return std::isdigit(c) != 0; }, '0');
  return shape + ' ';
}

}  // namespace

LogLines::LogLines(const std::vector<LogGrammar>& grammars) {
  for (const LogGrammar& grammar : grammars) {
    prefixes_.insert(prefixes_.end(), grammar.prefixes.begin(), grammar.prefixes.end());
  }
  std::sort(prefixes_.begin(), prefixes_.end(), [](std::string_view a, std::string_view b) {
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  });
  prefixes_.erase(std::unique(prefixes_.begin(), prefixes_.end()), prefixes_.end());
}

std::string_view LogLines::prefix_at(std::string_view text) const {
  const auto it = std::find_if(prefixes_.begin(), prefixes_.end(),
                               [&](std::string_view prefix) { return text.starts_with(prefix); });
  return it == prefixes_.end() ? std::string_view{} : *it;
}

/// A line without a prefix that may be the rest of one: the start of a prefix, or a line whose
/// prefix was lost. Whatever it said is lost too, so what is absent proves nothing.
bool LogLines::may_be_cut(std::string_view text) const {
  return text.find(kFamilyPrefix) != std::string_view::npos ||
         std::any_of(prefixes_.begin(), prefixes_.end(), [&](std::string_view prefix) {
           return !text.empty() && prefix.starts_with(text);
         });
}

void LogLines::read_line(std::string_view raw, std::size_t number, bool terminated,
                         std::vector<LogLine>& out) const {
  const bool too_long = raw.size() > kLongestLine;
  // A file that was truncated while a program wrote to it starts its next line with NUL bytes.
  while (!raw.empty() && raw.front() == '\0') raw.remove_prefix(1);
  std::string owned;
  std::string_view text = raw;
  if (raw.find('\x1b') != std::string_view::npos) {
    owned = without_colours(raw);
    text = owned;
  }

  std::string_view rest = trim_front(text);
  std::string stamp;
  // Mail and Markdown quote what they cite.
  while (rest.starts_with('>')) rest = trim_front(rest.substr(1));
  while (prefix_at(rest).empty()) {
    const std::size_t end = rest.find_first_of(" \t");
    if (end == std::string_view::npos) break;
    const std::string_view token = rest.substr(0, end);
    if (!is_time(token) && !is_process(token) && !is_level(token)) break;
    if (stamp.size() < kLongestLine) stamp += shape_of(token);
    rest = trim_front(rest.substr(end));
  }

  struct Hit {
    std::size_t at;
    std::string_view prefix;
  };
  std::vector<Hit> hits;
  for (const std::string_view prefix : prefixes_) {
    for (std::size_t at = rest.find(prefix); at != std::string_view::npos;
         at = rest.find(prefix, at + prefix.size())) {
      hits.push_back({at, prefix});
    }
  }
  std::sort(hits.begin(), hits.end(), [](const Hit& a, const Hit& b) {
    return a.at != b.at ? a.at < b.at : a.prefix.size() > b.prefix.size();
  });
  // A prefix inside another, longer one is part of it.
  std::size_t covered = 0;
  std::erase_if(hits, [&](const Hit& hit) {
    if (hit.at < covered) return true;
    covered = hit.at + hit.prefix.size();
    return false;
  });
  if (hits.empty()) {
    const bool stamp_only = is_time(rest) || is_level(rest) || (rest.empty() && !stamp.empty());
    if (stamp_only || may_be_cut(rest)) out.push_back({number, {}, {}, {}, true, terminated});
    return;
  }
  const bool damaged = too_long || hits.size() > 1 || hits.front().at != 0;
  for (std::size_t i = 0; i < hits.size(); ++i) {
    const std::size_t from = hits[i].at + hits[i].prefix.size();
    const std::size_t to = i + 1 < hits.size() ? hits[i + 1].at : rest.size();
    const std::string_view said = rest.substr(from, std::min(to - from, kLongestLine));
    out.push_back({number, hits[i].prefix, collapsed(said), stamp, damaged, terminated});
  }
}

std::vector<LogLine> LogLines::read(std::string_view text) const {
  std::vector<LogLine> lines;
  std::size_t number = 1;
  while (!text.empty()) {
    const std::size_t end = text.find_first_of("\r\n");
    read_line(text.substr(0, end), number, end != std::string_view::npos, lines);
    if (end == std::string_view::npos) break;
    if (text[end] == '\n') ++number;
    text.remove_prefix(end + 1);
  }
  return lines;
}

}  // namespace metaldoctor
