#include "scanners/code/app_match.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "scanners/macho/fixups.h"
#include "scanners/macho/objc.h"

namespace metaldoctor {
namespace {

bool holds(Bytes bytes, std::string_view text) {
  // An empty section has no bytes to point at, and memmem takes no null pointer.
  if (text.empty() || bytes.size() < text.size()) return false;
  return memmem(bytes.data(), bytes.size(), text.data(), text.size()) != nullptr;
}

/// Whether one marker's text is in the image. One function a kind of marker.
class MarkerSearch {
 public:
  MarkerSearch(const Image& image, std::string_view path) : image_(image), path_(path) {}

  bool found(const Marker& marker) {
    for (const auto& [kind, search] : kSearches)
      if (kind == marker.kind) return (this->*search)(marker.match);
    return false;
  }

 private:
  using Search = bool (MarkerSearch::*)(std::string_view);
  static const std::array<std::pair<std::string_view, Search>, 6> kSearches;

  bool section(std::string_view match) {
    const auto comma = match.find(',');
    if (comma == std::string_view::npos) return false;
    return image_.section(match.substr(0, comma), match.substr(comma + 1)) != nullptr;
  }

  bool symbol(std::string_view match) {
    const Bytes strings = image_.part(image_.linkedit().strings);
    const std::string whole = '\0' + std::string(match) + '\0';
    return holds(strings, whole);
  }

  bool cstring(std::string_view match) {
    return std::any_of(image_.sections().begin(), image_.sections().end(), [&](const Section& s) {
      return s.name == "__cstring" && holds(s.bytes, match);
    });
  }

  bool selector(std::string_view match) {
    const std::string whole = std::string(match) + '\0';
    for (const Section& s : image_.sections())
      if ((s.name == "__objc_methname" || s.name == "__cstring") && holds(s.bytes, whole))
        return true;
    return false;
  }

  /// Shader source kept in a data section.
  bool msl(std::string_view match) {
    if (!msl_known_) {
      for (const Section& s : image_.sections())
        if (!s.is_code() && holds(s.bytes, "metal_stdlib")) msl_.push_back(s.bytes);
      msl_known_ = true;
    }
    return std::any_of(msl_.begin(), msl_.end(), [&](Bytes text) { return holds(text, match); });
  }

  bool path(std::string_view match) { return path_.find(match) != std::string_view::npos; }

  const Image& image_;
  std::string_view path_;
  bool msl_known_ = false;
  std::vector<Bytes> msl_;
};

const std::array<std::pair<std::string_view, MarkerSearch::Search>, 6> MarkerSearch::kSearches = {{
    {"section", &MarkerSearch::section},
    {"symbol", &MarkerSearch::symbol},
    {"cstring", &MarkerSearch::cstring},
    {"selector", &MarkerSearch::selector},
    {"msl", &MarkerSearch::msl},
    {"path", &MarkerSearch::path},
}};

/// The ranges that every found marker allows.
std::vector<std::string> allowed_ranges(const App& app, const std::vector<const Marker*>& found) {
  const auto index = [&](const std::string& id, std::size_t otherwise) {
    for (std::size_t i = 0; i < app.ranges.size(); ++i)
      if (app.ranges[i].id == id) return i;
    return otherwise;
  };
  std::size_t first = 0, last = app.ranges.size();  // [first, last)
  for (const Marker* marker : found) {
    if (!marker->from.empty()) first = std::max(first, index(marker->from, 0));
    if (!marker->to.empty()) last = std::min(last, index(marker->to, app.ranges.size() - 1) + 1);
  }
  std::vector<std::string> out;
  for (std::size_t i = first; i < last; ++i) out.push_back(app.ranges[i].id);
  return out;
}

bool names_app(const Marker& marker) {
  return marker.from.empty() && marker.to.empty();
}

}  // namespace

std::vector<AppMatch> match_apps(std::span<const App> apps, const Image& image,
                                 std::string_view path) {
  std::vector<AppMatch> out;
  MarkerSearch search(image, path);
  for (const App& app : apps) {
    std::vector<const Marker*> found;
    for (const Marker& marker : app.markers)
      if (search.found(marker)) found.push_back(&marker);
    const bool named = std::any_of(found.begin(), found.end(),
                                   [](const Marker* marker) { return names_app(*marker); });
    if (!named && found.size() < 2) continue;
    AppMatch match;
    match.app = app.id;
    match.ranges = allowed_ranges(app, found);
    for (const Marker* marker : found) match.markers.push_back(marker->kind + " " + marker->match);
    out.push_back(std::move(match));
  }
  return out;
}

Result<std::vector<AppMatch>> match_apps(const Tables& tables, const Slice& slice,
                                         std::string_view path) {
  const auto image = Image::read(slice);
  if (!image) return tl::unexpected(image.error());
  return match_apps(tables.apps(), *image, path);
}

}  // namespace metaldoctor
