#include <fmt/format.h>

#include "shim/recommend.h"
#include "tables/app_release.h"

namespace metaldoctor {

std::vector<Path> paths_of(const App& app, const AppRange& range) {
  std::vector<Path> paths;
  for (const Rule& rule : range.rules) {
    Path path;
    path.id = fmt::format("{}@{}/{}", app.id, range.id, rule.id);
    path.program = app.id;
    path.predicate = rule.predicate;
    path.side = rule.side;
    path.opens = rule.opens;
    path.effect = rule.effect;
    path.kernels = rule.kernels;
    path.log_lines = rule.log_lines;
    path.evidence = rule.provenance.evidence;
    path.sources = rule.provenance.sources;
    paths.push_back(std::move(path));
  }
  return paths;
}

Result<std::pair<const App*, const AppRange*>> find_app(const Tables& tables,
                                                        std::string_view spec) {
  const std::size_t at = spec.find('@');
  const std::string_view name = spec.substr(0, at);
  const App* app = tables.app(name);
  if (!app) {
    std::vector<std::string_view> ids;
    for (const App& known : tables.apps()) ids.push_back(known.id);
    return fail(Fault::usage, "unknown-program", std::string(spec),
                fmt::format("no rules are known for a program '{}'", name),
                fmt::format("known: {}", fmt::join(ids, ", ")));
  }
  if (app->ranges.empty()) {
    return fail(Fault::bug, "no-ranges", app->id, "the program's table has no release range");
  }
  if (at == std::string_view::npos) return std::pair(app, &app->ranges.back());
  const auto range = app_range(*app, name, spec.substr(at + 1));
  if (!range) return tl::unexpected(range.error());
  return std::pair(app, *range);
}

}  // namespace metaldoctor
