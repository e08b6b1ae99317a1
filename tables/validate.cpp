// Checks of the table files: each against its schema, then the references between them.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tables/validate.h"

namespace metaldoctor {

void check_query_of(const Tables& tables, const std::string& query, const std::string& pointer,
                    Problems& problems) {
  if (query.empty()) return;
  const Query* row = tables.query(query);
  problems.reference(row != nullptr && row->selector == query, pointer, "query", query);
}

namespace {

using FileReport = Tables::FileReport;

/// "Apple7" is a family; "varies" is not, and stands only where a floor may vary.
void check_floor(const Tables& tables, const std::optional<std::string>& floor, bool may_vary,
                 const std::string& pointer, Problems& problems) {
  if (!floor || (may_vary && *floor == "varies")) return;
  problems.reference(tables.family(*floor) != nullptr, pointer, "family", *floor);
}

void check_families(const Tables& tables, Problems& problems) {
  std::set<std::string> seen;
  std::size_t i = 0;
  for (const Family& family : tables.families()) {
    problems.unique(seen, family.short_name, row_pointer(i, "/short"));
    problems.unique(seen, std::to_string(family.value), row_pointer(i, "/value"));
    check_floor(tables, family.reported_from, false, row_pointer(i, "/reported_from"), problems);
    for (const std::string& implied : family.implies) {
      const Family* other = tables.family(implied);
      problems.reference(other != nullptr, row_pointer(i, "/implies"), "family", implied);
      if (other == nullptr) continue;
      for (const std::string& further : other->implies) {
        const bool closed = std::find(family.implies.begin(), family.implies.end(), further) !=
                            family.implies.end();
        if (!closed) {
          problems.add("table-not-closed", row_pointer(i, "/implies"),
                       fmt::format("{} implies {}, so it must be listed too", implied, further));
        }
      }
    }
    ++i;
  }
  if (tables.newest_macos() == OsVersion{}) {
    problems.add("table-reference", "/newest_macos", "expected a macOS version");
  }
}

void check_feature_sets(const Tables& tables, Problems& problems) {
  std::set<std::string> seen;
  std::size_t i = 0;
  for (const FeatureSet& set : tables.feature_sets()) {
    problems.unique(seen, std::to_string(set.value), row_pointer(i, "/value"));
    check_floor(tables, set.family, false, row_pointer(i, "/family"), problems);
    ++i;
  }
}

void check_chips(const Tables& tables, Problems& problems) {
  std::set<std::string> names, models;
  std::size_t i = 0;
  for (const Chip& chip : tables.chips()) {
    problems.unique(names, chip.name, row_pointer(i, "/name"));
    check_floor(tables, chip.family, false, row_pointer(i, "/family"), problems);
    for (const std::string& model : chip.hw_models) {
      problems.unique(models, model, row_pointer(i, "/hw_models"));
    }
    for (const std::string& family : chip.inferred_families) {
      problems.reference(tables.family(family) != nullptr, row_pointer(i, "/inferred_families"),
                         "family", family);
    }
    ++i;
  }
}

void check_features(const Tables& tables, Problems& problems) {
  std::set<std::string> seen;
  std::size_t i = 0;
  for (const Feature& feature : tables.features()) {
    problems.unique(seen, feature.id, row_pointer(i, "/id"));
    check_floor(tables, feature.metal, true, row_pointer(i, "/metal"), problems);
    check_floor(tables, feature.apple, true, row_pointer(i, "/apple"), problems);
    check_floor(tables, feature.mac, true, row_pointer(i, "/mac"), problems);
    check_query_of(tables, feature.query, row_pointer(i, "/query"), problems);
    ++i;
  }
}

constexpr std::array<std::string_view, 3> kLimitWords{"no limit", "varies", "not available"};

/// Numbers, the words that Apple's tables use in place of one, and tile sizes ("32x16").
bool is_limit(const Value& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number >= 0;
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return !is_known(value);
  if (std::find(kLimitWords.begin(), kLimitWords.end(), *text) != kLimitWords.end()) return true;
  const std::size_t by = text->find('x');
  const auto digits = [](std::string_view part) {
    return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
  };
  return by != std::string::npos && digits(std::string_view(*text).substr(0, by)) &&
         digits(std::string_view(*text).substr(by + 1));
}

void check_limits(const Tables& tables, Problems& problems) {
  std::set<std::string> seen;
  std::size_t i = 0;
  for (const Limit& limit : tables.limits()) {
    problems.unique(seen, limit.id, row_pointer(i, "/id"));
    check_query_of(tables, limit.query, row_pointer(i, "/query"), problems);
    for (const auto& [family, value] : limit.values) {
      problems.reference(tables.family(family) != nullptr, row_pointer(i, "/values/" + family),
                         "family", family);
      if (!is_limit(value)) {
        problems.add("table-type", row_pointer(i, "/values/" + family),
                     fmt::format("{} is no limit: expected a number of at least 0, a size such as "
                                 "'32x32', or one of {}",
                                 to_string(value), fmt::join(kLimitWords, ", ")));
      }
    }
    ++i;
  }
}

bool is_of_type(const Value& value, AnswerType type) {
  if (!is_known(value)) return true;
  if (type == AnswerType::boolean) return std::holds_alternative<bool>(value);
  if (type == AnswerType::integer) return std::holds_alternative<std::int64_t>(value);
  return std::holds_alternative<std::string>(value);
}

void check_known(const Tables& tables, const Query& query, std::size_t i, Problems& problems) {
  std::size_t k = 0;
  for (const KnownAnswer& known : query.known) {
    const std::string pointer = row_pointer(i, fmt::format("/known/{}", k++));
    check_floor(tables, known.apple, false, pointer + "/apple", problems);
    check_floor(tables, known.mac, false, pointer + "/mac", problems);
    const bool fits = query.type == AnswerType::boolean
                          ? std::holds_alternative<bool>(known.answer)
                          : std::holds_alternative<std::int64_t>(known.answer);
    if (!fits) problems.add("table-type", pointer + "/answer", "not of the query's type");
  }
}

void check_queries(const Tables& tables, Problems& problems) {
  std::set<std::string> names, wires;
  std::size_t i = 0;
  for (const Query& query : tables.queries()) {
    problems.unique(names, query.selector, row_pointer(i, "/selector"));
    for (const std::string& alias : query.aliases) {
      problems.unique(names, alias, row_pointer(i, "/aliases"));
    }
    if (query.wire) problems.unique(wires, std::to_string(*query.wire), row_pointer(i, "/wire"));
    if (query.wire && query.type != AnswerType::boolean && query.type != AnswerType::integer) {
      problems.add("table-type", row_pointer(i, "/wire"), "only BOOL and integers are overridable");
    }
    if (!query.feature.empty()) {
      problems.reference(tables.feature(query.feature) != nullptr, row_pointer(i, "/feature"),
                         "feature", query.feature);
    }
    if (!query.limit.empty()) {
      problems.reference(tables.limit(query.limit) != nullptr, row_pointer(i, "/limit"), "limit",
                         query.limit);
    }
    check_known(tables, query, i, problems);
    for (const std::int64_t value : query.known_arguments) {
      const bool exists =
          (query.selector != "supportsFamily:" || tables.family(value) != nullptr) &&
          (query.selector != "supportsFeatureSet:" || tables.feature_set(value) != nullptr);
      problems.reference(exists, row_pointer(i, "/known_arguments"), "value",
                         std::to_string(value));
    }
    ++i;
  }
}

void check_hazards(const Tables& tables, Problems& problems) {
  std::set<std::string> seen;
  std::size_t i = 0;
  for (const Hazard& hazard : tables.hazards()) {
    problems.unique(seen, hazard.id, row_pointer(i, "/id"));
    for (const HazardAnswer& answer : hazard.answers) {
      if (answer.query == "*") continue;
      check_query_of(tables, answer.query, row_pointer(i, "/answers"), problems);
      const Query* query = tables.query(answer.query);
      if (query != nullptr && answer.argument) {
        const bool listed = std::find(query->known_arguments.begin(), query->known_arguments.end(),
                                      *answer.argument) != query->known_arguments.end();
        problems.reference(listed, row_pointer(i, "/answers"), "argument",
                           to_string(QueryKey{answer.query, {*answer.argument}}));
      }
      if (query != nullptr && !query->overridable) {
        problems.add("table-reference", row_pointer(i, "/answers"),
                     fmt::format("'{}' cannot be overridden", answer.query));
      }
    }
    for (const std::string& program : hazard.programs) {
      problems.reference(tables.app(program) != nullptr, row_pointer(i, "/programs"), "app",
                         program);
    }
    for (const std::string& selector : hazard.or_gate_sends) {
      check_query_of(tables, selector, row_pointer(i, "/or_gate_sends"), problems);
    }
    if (hazard.os_from && hazard.os_to && !(*hazard.os_from < *hazard.os_to)) {
      problems.add("table-version", row_pointer(i, "/os"), "'from' must be before 'to'");
    }
    const bool by_program = hazard.scope == Hazard::Scope::program;
    const bool names_any = !hazard.programs.empty() || !hazard.or_gate_sends.empty();
    if (by_program != names_any) {
      problems.add("table-reference", row_pointer(i, "/scope"),
                   "programs and selectors belong to scope program, and only to it");
    }
    ++i;
  }
}

void check_verdicts(const Tables& tables, Problems& problems) {
  std::set<std::string> seen;
  std::size_t i = 0;
  for (const Verdict& verdict : tables.verdicts()) {
    problems.unique(seen, verdict.id, row_pointer(i++, "/id"));
  }
}

void check_paravirtual(const Tables& tables, Problems& problems) {
  std::set<std::string> seen, ids;
  std::size_t i = 0;
  for (const ParavirtualAnswer& row : tables.paravirtual()) {
    problems.unique(seen, to_string(row.answer.key), row_pointer(i));
    const auto key = tables.canonical(row.answer.key);
    problems.reference(key && *key == row.answer.key, row_pointer(i, "/query"), "query",
                       to_string(row.answer.key));
    const Query* query = tables.query(row.answer.key.query);
    if (query != nullptr && !is_of_type(row.answer.value, query->type)) {
      problems.add("table-type", row_pointer(i, "/answer"), "not of the query's type");
    }
    if (is_known(row.answer.value) == (row.provenance.evidence == Evidence::unknown)) {
      problems.add("table-evidence", row_pointer(i, "/evidence"),
                   "an unknown answer has evidence unknown, and only it");
    }
    ++i;
  }
  i = 0;
  for (const Observation& observation : tables.observations()) {
    problems.unique(ids, observation.id, fmt::format("/observations/{}/id", i++));
  }
}

void check_log_grammars(const Tables& tables, Problems& problems) {
  constexpr std::string_view kFact = "fact:";
  std::set<std::string> seen;
  std::size_t i = 0;
  for (const LogGrammar& grammar : tables.log_grammars()) {
    problems.unique(seen, grammar.id, row_pointer(i, "/id"));
    std::size_t k = 0;
    for (const LogGrammar::Item& item : grammar.items) {
      const std::string pointer = row_pointer(i, fmt::format("/items/{}/yields", k++));
      const bool is_other = item.yields.empty() || item.yields.starts_with(kFact) ||
                            item.yields.starts_with("device.") ||
                            item.yields.starts_with("system.");
      if (!is_other) check_query_of(tables, item.yields, pointer, problems);
    }
    ++i;
  }
}

void check_preflight(const Tables& tables, Problems& problems) {
  std::set<std::string> seen;
  std::size_t i = 0;
  for (const PreflightRow& row : tables.preflight_rows()) {
    problems.unique(seen, row.id, row_pointer(i, "/id"));
    // Every program gets a verdict: what no other row takes, the last one does.
    const bool is_last = ++i == tables.preflight_rows().size();
    if (row.when.empty() != is_last || (is_last && row.verdict == "note")) {
      problems.add("table-order", row_pointer(i - 1, "/when"),
                   "the last row, and only it, decides without a condition");
    }
  }
}

using Check = void (*)(const Tables&, Problems&);
constexpr std::pair<std::string_view, Check> kChecks[] = {
    {"table.families", check_families},
    {"table.feature-sets", check_feature_sets},
    {"table.chips", check_chips},
    {"table.features", check_features},
    {"table.limits", check_limits},
    {"table.queries", check_queries},
    {"table.hazards", check_hazards},
    {"table.verdicts", check_verdicts},
    {"table.paravirtual", check_paravirtual},
    {"table.log-grammars", check_log_grammars},
    {"table.preflight", check_preflight},
    {"table.app", check_app},
};

/// A source without a blank, a slash or a colon is a key, and a key must lead to a citation.
void check_sources(const Json& json, const Json& sources, const std::set<std::string>& observations,
                   const std::string& pointer, Problems& problems) {
  if (!json.is_structured()) return;
  std::size_t index = 0;
  for (const auto& [name, value] : json.items()) {
    const std::string below =
        fmt::format("{}/{}", pointer, json.is_array() ? std::to_string(index++) : name);
    if (json.is_object() && name == "sources" && value.is_array()) {
      for (const Json& source : value) {
        const auto key = source.get<std::string>();
        const bool is_key = key.find_first_of(" /:") == std::string::npos;
        problems.reference(!is_key || sources.contains(key) || observations.contains(key), below,
                           "source", key);
      }
    } else {
      check_sources(value, sources, observations, below, problems);
    }
  }
}

/// What a "pattern" of the schema would say. The validator's patterns are std::regex, which
/// recurses once a character, so that one long string would end the process.
void check_forms(const Json& json, const std::string& pointer, Problems& problems) {
  constexpr std::string_view kVersions[] = {"min_macos", "from", "to"};
  const bool is_os_bound = pointer.ends_with("/os");
  std::size_t index = 0;
  for (const auto& [name, value] : json.items()) {
    const std::string below =
        fmt::format("{}/{}", pointer, json.is_array() ? std::to_string(index++) : name);
    if (value.is_structured()) {
      check_forms(value, below, problems);
    } else if (json.is_object() && value.is_string() &&
               (name == kVersions[0] ||
                (is_os_bound && (name == kVersions[1] || name == kVersions[2])))) {
      if (!parse_os_version(value.get<std::string>())) {
        problems.add("table-version", below, "expected a macOS version such as 15.0");
      }
    }
  }
}

/// The file by itself: strict JSON, its schema, and rows that can be read.
std::optional<Json> check_file(const TableSource& source, TableReader& reader, FileReport& report) {
  auto document =
      read_document(*source.text(report.name), table_kind(report.name), source.shown(report.name));
  if (!document) {
    report.problems.push_back(document.error());
    return std::nullopt;
  }
  report.rows = document->at("rows").size();
  if (report.rows == 0) {  // a table without rows would switch off what it stands for, unseen
    report.problems.push_back({source.is_override(report.name) ? Fault::input : Fault::bug,
                               "table-empty",
                               source.shown(report.name) + ": /rows",
                               "the table has no rows",
                               {}});
    return std::nullopt;
  }
  if (table_kind(report.name) == "table.app") {
    if (auto app = reader.app(report.name); !app) {
      report.problems.push_back(app.error());
      return std::nullopt;
    }
  }
  return std::move(*document);
}

}  // namespace

std::vector<FileReport> validate_tables(const TableSource& source, const Tables& tables) {
  TableReader reader(source);
  std::vector<FileReport> reports;
  std::map<std::string, Json> documents;
  for (const std::string& name : source.names()) {
    FileReport report{name, fmt::format("metaldoctor.{}/1", table_kind(name)), 0, {}};
    if (auto document = check_file(source, reader, report)) {
      documents.emplace(name, std::move(*document));
    }
    reports.push_back(std::move(report));
  }
  // References can only be followed where every file could be read.
  if (documents.size() != reports.size()) return reports;
  std::set<std::string> observations;
  for (const Observation& row : tables.observations()) observations.insert(row.id);
  for (FileReport& report : reports) {
    Problems problems(source, report.name);
    const Json& document = documents.at(report.name);
    check_sources(document.at("rows"), document.at("sources"), observations, "/rows", problems);
    check_forms(document.at("rows"), "/rows", problems);
    for (const auto& [kind, check] : kChecks) {
      if (kind == table_kind(report.name)) check(tables, problems);
    }
    report.problems = std::move(problems.list);
  }
  return reports;
}

}  // namespace metaldoctor
