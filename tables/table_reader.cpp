#include <algorithm>

#include "tables/tables_impl.h"

namespace metaldoctor {

Result<Json> TableReader::document(std::string_view name) {
  const auto text = source_.text(name);
  if (!text) {
    return fail(Fault::bug, "table-missing", source_.shown(name), "there is no such table");
  }
  Result<Json> file = source_.is_override(name)
                          ? parse_json(*text, source_.shown(name))
                          : Result<Json>(Json::parse(*text, nullptr, /*allow_exceptions=*/false));
  if (!file) return file;
  if (!file->is_object()) return malformed(name, "/", "expected a JSON object");
  try {
    remember_header(*file, name);
  } catch (const nlohmann::json::exception& e) {
    return malformed(name, "/", e.what());
  }
  return file;
}

Result<App> TableReader::app(std::string_view name) {
  auto app = own_rules(name);
  if (!app) return app;
  std::map<std::string, App, std::less<>> others;  // by file
  for (AppRange& range : app->ranges) {
    for (const std::string& included : range.includes) {
      const std::string file = fmt::format("apps/{}.json", included.substr(0, included.find('@')));
      if (!source_.text(file)) continue;  // validation names what does not resolve
      auto other = others.find(file);
      if (other == others.end()) {
        auto read = own_rules(file);
        if (!read) return tl::unexpected(read.error());
        other = others.emplace(file, std::move(*read)).first;
      }
      if (const AppRange* from = app_range(other->second, included))
        include(*from, included, range);
    }
  }
  return app;
}

const AppRange* TableReader::app_range(const App& app, std::string_view spec) {
  for (const AppRange& range : app.ranges) {
    if (spec == fmt::format("{}@{}", app.id, range.id)) return &range;
  }
  return nullptr;
}

void TableReader::include(const AppRange& from, const std::string& name, AppRange& into) {
  for (Rule rule : from.rules) {
    rule.included_from = name;
    into.rules.push_back(std::move(rule));
  }
  for (const QueryKey& key : from.asks) {
    if (std::find(into.asks.begin(), into.asks.end(), key) == into.asks.end()) {
      into.asks.push_back(key);
    }
  }
}

Result<App> TableReader::own_rules(std::string_view name) {
  auto file = document(name);
  if (!file) return tl::unexpected(file.error());
  try {
    auto app = read_app(*file);
    if (!app) return tl::unexpected(located(app.error(), name));
    return app;
  } catch (const nlohmann::json::exception& e) {
    return malformed(name, "/rows", e.what());
  }
}

Result<std::vector<App>> TableReader::apps() {
  std::vector<App> apps;
  for (const std::string& name : source_.names()) {
    if (!name.starts_with("apps/")) continue;
    auto one = app(name);
    if (!one) return tl::unexpected(one.error());
    apps.push_back(std::move(*one));
  }
  return apps;
}

const std::string* TableReader::citation(std::string_view key) const {
  const auto found = citations_.find(key);
  return found == citations_.end() ? nullptr : &found->second;
}

Diagnostic TableReader::located(Diagnostic diagnostic, std::string_view name) const {
  diagnostic.where = fmt::format("{}: {}", source_.shown(name), diagnostic.where);
  return diagnostic;
}

tl::unexpected<Diagnostic> TableReader::malformed(std::string_view name, const std::string& pointer,
                                                  std::string what) const {
  return fail(source_.is_override(name) ? Fault::input : Fault::bug, "table-malformed",
              fmt::format("{}: {}", source_.shown(name), pointer), std::move(what));
}

void TableReader::remember_header(const Json& file, std::string_view name) {
  if (const auto sources = file.find("sources"); sources != file.end()) {
    for (const auto& [key, citation] : sources->items()) {
      citations_.emplace(key, citation.get<std::string>());
    }
  }
  if (name != "families.json") return;
  edition_ = text_of(file, "edition");
  newest_macos_ = version_of(file, "newest_macos");
}

}  // namespace metaldoctor
