#include "tables/table_source.h"

#include <set>

#include "tables/embedded_file.h"

namespace metaldoctor {
namespace {

constexpr std::string_view kData = "data/";

}  // namespace

std::vector<std::string> TableSource::names() const {
  std::set<std::string> names;
  for (const EmbeddedFile& file : embedded_tables()) {
    if (file.name.starts_with(kData)) names.emplace(file.name.substr(kData.size()));
  }
  for (const auto& [name, text] : overrides_) names.insert(name);
  return {names.begin(), names.end()};
}

std::optional<std::string_view> TableSource::text(std::string_view name) const {
  if (const auto found = overrides_.find(name); found != overrides_.end()) return found->second;
  for (const EmbeddedFile& file : embedded_tables()) {
    if (file.name.starts_with(kData) && file.name.substr(kData.size()) == name) return file.bytes;
  }
  return std::nullopt;
}

std::string TableSource::shown(std::string_view name) const {
  std::string_view folder = is_override(name) ? std::string_view(directory_) : "tables/data";
  if (folder.ends_with('/')) folder.remove_suffix(1);
  if (folder.empty()) return std::string(name);
  return std::string(folder) + '/' + std::string(name);
}

std::string table_kind(std::string_view name) {
  if (name.starts_with("apps/")) return "table.app";
  if (name.ends_with(".json")) name.remove_suffix(std::string_view(".json").size());
  return "table." + std::string(name);
}

}  // namespace metaldoctor
