// Checks of apps/<id>.json beyond its schema.
#include <algorithm>
#include <set>
#include <string>

#include "tables/app_release.h"
#include "tables/validate.h"

namespace metaldoctor {
namespace {

void check_atoms(const Tables& tables, const Rule& rule, const std::string& pointer,
                 Problems& problems) {
  for (const Atom& atom : rule.predicate.atoms()) {
    if (atom.kind != AtomKind::answer) continue;
    const auto key = tables.canonical(atom.key);
    problems.reference(key && *key == atom.key, pointer, "query", to_string(atom.key));
    if (atom.key.query == "supportsFamily:" && !atom.key.arguments.empty()) {
      problems.reference(tables.family(atom.key.arguments.front()) != nullptr, pointer, "family",
                         std::to_string(atom.key.arguments.front()));
    }
  }
}

/// Ids are typed on command lines and joined: app@range/rule.
void check_id(const std::string& id, const std::string& pointer, Problems& problems) {
  const bool joins = id.find_first_of(" @/:=,") == std::string::npos;
  if (!joins)
    problems.add("table-id", pointer, fmt::format("'{}' has a blank or one of @/:=,", id));
}

/// "app@range", one step: what an included range includes would be lost without a word.
void check_includes(const Tables& tables, const AppRange& range, const std::string& pointer,
                    Problems& problems) {
  for (const std::string& spec : range.includes) {
    const App* other = tables.app(spec.substr(0, spec.find('@')));
    const AppRange* included = other != nullptr ? TableReader::app_range(*other, spec) : nullptr;
    problems.reference(included != nullptr, pointer, "range", spec);
    if (included != nullptr && !included->includes.empty()) {
      problems.add("table-reference", pointer,
                   fmt::format("'{}' includes another range itself", spec));
    }
  }
}

/// Numbers that can be compared, each span after the one before it.
void check_spans(const App& app, const ReleaseLine& line, const std::string& pointer,
                 Problems& problems) {
  std::string last;
  std::size_t i = 0;
  for (const ReleaseLine::Span& span : line.spans) {
    const std::string at = fmt::format("{}/spans/{}", pointer, i);
    const bool known = std::any_of(app.ranges.begin(), app.ranges.end(),
                                   [&](const AppRange& range) { return range.id == span.range; });
    problems.reference(known, at + "/range", "range", span.range);
    for (const std::string& bound : {span.from, span.to}) {
      if (!bound.empty() && !is_release_number(bound)) {
        problems.add("table-release", at, fmt::format("'{}' is no release number", bound));
      }
    }
    const bool open_inside = (span.from.empty() && i > 0) ||
                             (span.to.empty() && i + 1 < line.spans.size()) ||
                             (span.from.empty() && span.to.empty());
    const bool in_order = (last.empty() || release_before(last, span.from)) &&
                          (span.from.empty() || span.to.empty() || span.from == span.to ||
                           release_before(span.from, span.to));
    if (open_inside || !in_order) {
      problems.add("table-release", at, "spans go from old to new, open only at their two ends");
    }
    last = span.to;
    ++i;
  }
}

void check_releases(const App& app, Problems& problems) {
  std::set<std::string> programs;
  std::size_t i = 0;
  for (const ReleaseLine& line : app.releases) {
    const std::string pointer = fmt::format("/releases/{}", i++);
    for (const std::string& program : line.programs) {
      problems.unique(programs, program, pointer + "/programs");
      const bool is_name = program == app.id || std::find(app.aliases.begin(), app.aliases.end(),
                                                          program) != app.aliases.end();
      problems.reference(is_name, pointer + "/programs", "name of this app", program);
    }
    check_spans(app, line, pointer, problems);
  }
}

void check_ranges(const Tables& tables, const App& app, std::set<std::string>& ids,
                  Problems& problems) {
  std::size_t i = 0;
  for (const AppRange& range : app.ranges) {
    problems.unique(ids, range.id, row_pointer(i, "/id"));
    check_id(range.id, row_pointer(i, "/id"), problems);
    for (const std::string& alias : range.aliases) {
      problems.unique(ids, alias, row_pointer(i, "/aliases"));
      check_id(alias, row_pointer(i, "/aliases"), problems);
    }
    check_includes(tables, range, row_pointer(i, "/includes"), problems);
    for (const QueryKey& ask : range.asks) {
      check_query_of(tables, ask.query, row_pointer(i, "/asks"), problems);
    }
    std::set<std::string> rules;
    std::size_t k = 0;
    for (const Rule& rule : range.rules) {
      const bool own = rule.included_from.empty();  // the others are checked where they are written
      const std::string pointer =
          row_pointer(i, own ? fmt::format("/rules/{}", k++) : std::string("/includes"));
      problems.unique(rules, rule.id, own ? pointer + "/id" : pointer);
      if (!own) continue;
      check_id(rule.id, pointer + "/id", problems);
      check_atoms(tables, rule, pointer + "/predicate", problems);
    }
    ++i;
  }
}

}  // namespace

void check_app(const Tables& tables, Problems& problems) {
  constexpr std::string_view kFolder = "apps/";
  constexpr std::string_view kJson = ".json";
  const std::string_view name = problems.name();
  const std::string id(name.substr(kFolder.size(), name.size() - kFolder.size() - kJson.size()));
  const App* app = tables.app(id);
  if (app == nullptr || app->id != id) {
    problems.add("table-reference", "/id", fmt::format("the id of this file must be '{}'", id));
    return;
  }
  std::set<std::string> ids;
  check_ranges(tables, *app, ids, problems);
  check_releases(*app, problems);
  std::size_t i = 0;
  for (const Marker& marker : app->markers) {
    const std::string pointer = fmt::format("/markers/{}", i++);
    const auto is_range = [&](const std::string& bound) {
      return bound.empty() || std::any_of(app->ranges.begin(), app->ranges.end(),
                                          [&](const AppRange& range) { return range.id == bound; });
    };
    problems.reference(is_range(marker.from), pointer + "/from", "range", marker.from);
    problems.reference(is_range(marker.to), pointer + "/to", "range", marker.to);
  }
}

}  // namespace metaldoctor
