#include "tables/app_release.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>

namespace metaldoctor {
namespace {

/// "b5000" counts commits, "1.8.2" has parts: two kinds that cannot be compared.
struct Release {
  bool is_build = false;
  std::vector<std::uint32_t> parts;
};

std::optional<Release> parse_release(std::string_view text) {
  constexpr std::size_t kMostParts = 4;
  Release release;
  release.is_build = text.starts_with('b');
  if (release.is_build || text.starts_with('v')) text.remove_prefix(1);
  while (release.parts.size() < kMostParts) {
    const std::string_view part = text.substr(0, text.find('.'));
    std::uint32_t value = 0;
    const auto [stop, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc{} || stop != part.data() + part.size()) return std::nullopt;
    release.parts.push_back(value);
    if (part.size() == text.size()) {
      const bool whole = !release.is_build || release.parts.size() == 1;
      return whole ? std::optional(std::move(release)) : std::nullopt;
    }
    text.remove_prefix(part.size() + 1);
  }
  return std::nullopt;
}

/// Negative, zero or positive; absent parts are 0.
int compare(const Release& a, const Release& b, std::size_t parts) {
  for (std::size_t i = 0; i < parts; ++i) {
    const std::uint32_t left = i < a.parts.size() ? a.parts[i] : 0;
    const std::uint32_t right = i < b.parts.size() ? b.parts[i] : 0;
    if (left != right) return left < right ? -1 : 1;
  }
  return 0;
}

int compare(const Release& a, const Release& b) {
  return compare(a, b, std::max(a.parts.size(), b.parts.size()));
}

enum class Place { before, inside, after, other_kind };

Place place(const Release& release, const ReleaseLine::Span& span) {
  const auto from = parse_release(span.from), to = parse_release(span.to);
  const auto& some = from ? from : to;
  if (some && some->is_build != release.is_build) return Place::other_kind;
  if (from && compare(release, *from) < 0) return Place::before;
  // "0.29" ends with the last 0.29.x: only the parts that the bound has count.
  if (to && compare(release, *to, to->parts.size()) > 0) return Place::after;
  return Place::inside;
}

std::string shown(const ReleaseLine::Span& span) {
  if (span.from == span.to) return fmt::format("{} is {}", span.range, span.from);
  if (span.from.empty()) return fmt::format("{} is up to {}", span.range, span.to);
  if (span.to.empty()) return fmt::format("{} is from {} on", span.range, span.from);
  return fmt::format("{} is {} to {}", span.range, span.from, span.to);
}

bool contains(const std::vector<std::string>& texts, std::string_view text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

/// The lines that `program` may mean: its own, or all of them for the app's id.
std::vector<const ReleaseLine*> lines_of(const App& app, std::string_view program) {
  std::vector<const ReleaseLine*> lines;
  for (const ReleaseLine& line : app.releases) {
    if (contains(line.programs, program)) return {&line};
    if (program == app.id) lines.push_back(&line);
  }
  return lines;
}

struct Search {
  std::set<std::string> ranges;  ///< that hold the release
  std::set<std::string> programs;
  std::vector<std::string> neighbours;
};

Search search(const std::vector<const ReleaseLine*>& lines, const Release& release) {
  Search found;
  for (const ReleaseLine* line : lines) {
    const ReleaseLine::Span *before = nullptr, *after = nullptr;
    bool inside = false;
    for (const ReleaseLine::Span& span : line->spans) {
      const Place where = place(release, span);
      if (where == Place::inside) found.ranges.insert(span.range);
      inside = inside || where == Place::inside;
      if (where == Place::after) before = &span;
      if (where == Place::before && after == nullptr) after = &span;
    }
    if (inside) found.programs.insert(line->programs.front());
    if (inside || (before == nullptr && after == nullptr)) continue;
    if (before != nullptr) found.neighbours.push_back(shown(*before));
    if (after != nullptr) found.neighbours.push_back(shown(*after));
  }
  return found;
}

const AppRange* named(const App& app, std::string_view name) {
  for (const AppRange& range : app.ranges) {
    if (range.id == name || contains(range.aliases, name)) return &range;
  }
  return nullptr;
}

std::string known_ranges(const App& app) {
  std::vector<std::string_view> ids;
  for (const AppRange& range : app.ranges) ids.push_back(range.id);
  return fmt::format("known, oldest first: {}", fmt::join(ids, ", "));
}

}  // namespace

bool is_release_number(std::string_view text) {
  return parse_release(text).has_value();
}

bool release_before(std::string_view a, std::string_view b) {
  const auto left = parse_release(a), right = parse_release(b);
  return left && right && left->is_build == right->is_build && compare(*left, *right) < 0;
}

Result<const AppRange*> app_range(const App& app, std::string_view program,
                                  std::string_view release) {
  if (const AppRange* range = named(app, release)) return range;
  const std::string where = fmt::format("{}@{}", program, release);
  const auto number = parse_release(release);
  const Search found = number ? search(lines_of(app, program), *number) : Search{};
  if (found.ranges.size() == 1) return named(app, *found.ranges.begin());
  if (found.ranges.size() > 1) {
    return fail(
        Fault::usage, "unknown-range", where,
        fmt::format("'{}' is a release of several programs with the rules of {}", release, app.id),
        fmt::format("name the program: {}", fmt::join(found.programs, ", ")));
  }
  if (!found.neighbours.empty()) {
    return fail(Fault::usage, "unknown-range", where,
                fmt::format("the rules of {} {} were not read; next to it: {}", program, release,
                            fmt::join(found.neighbours, ", ")),
                known_ranges(app));
  }
  return fail(Fault::usage, "unknown-range", where,
              fmt::format("no release range of {} is called '{}'", app.id, release),
              known_ranges(app));
}

}  // namespace metaldoctor
