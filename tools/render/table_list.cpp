#include <fmt/core.h>
#include <fmt/ranges.h>

#include <array>
#include <functional>

#include "tables/document.h"
#include "tools/render/explain.h"

namespace metaldoctor {
namespace {

struct Row {
  std::string id;
  std::string text;
};

std::vector<Row> family_rows(const Tables& tables) {
  std::vector<Row> rows;
  for (const Family& f : tables.families()) {
    rows.push_back({std::to_string(f.value),
                    fmt::format("{}, macOS {}", f.short_name, to_string(f.min_macos))});
  }
  return rows;
}

std::vector<Row> chip_rows(const Tables& tables) {
  std::vector<Row> rows;
  for (const Chip& c : tables.chips()) rows.push_back({c.name, c.family.value_or("unconfirmed")});
  return rows;
}

std::vector<Row> feature_rows(const Tables& tables) {
  std::vector<Row> rows;
  for (const Feature& f : tables.features()) {
    rows.push_back(
        {f.id, fmt::format("{}: Apple {}, Mac {}, Metal {}", f.name, f.apple.value_or("-"),
                           f.mac.value_or("-"), f.metal.value_or("-"))});
  }
  return rows;
}

std::vector<Row> limit_rows(const Tables& tables) {
  std::vector<Row> rows;
  for (const Limit& l : tables.limits()) rows.push_back({l.id, l.name});
  return rows;
}

std::vector<Row> query_rows(const Tables& tables) {
  std::vector<Row> rows;
  for (const Query& q : tables.queries()) {
    rows.push_back({q.selector, q.overridable ? fmt::format("wire {}", q.wire.value_or(0))
                                              : std::string("not overridable")});
  }
  return rows;
}

std::vector<Row> hazard_rows(const Tables& tables) {
  std::vector<Row> rows;
  for (const Hazard& h : tables.hazards()) rows.push_back({h.id, h.effect});
  return rows;
}

std::vector<Row> app_rows(const Tables& tables) {
  std::vector<Row> rows;
  for (const App& app : tables.apps()) {
    for (const AppRange& range : app.ranges) {
      rows.push_back(
          {fmt::format("{}@{}", app.id, range.id),
           fmt::format("{}: {}, {} rule(s)", app.name, range.title, range.rules.size())});
    }
  }
  return rows;
}

std::vector<Row> verdict_rows(const Tables& tables) {
  std::vector<Row> rows;
  for (const Verdict& v : tables.verdicts()) rows.push_back({v.id, v.meaning});
  return rows;
}

std::vector<Row> paravirtual_rows(const Tables& tables) {
  std::vector<Row> rows;
  for (const ParavirtualAnswer& p : tables.paravirtual()) {
    rows.push_back({to_string(p.answer.key), to_string(p.answer.value)});
  }
  return rows;
}

std::vector<Row> observation_rows(const Tables& tables) {
  std::vector<Row> rows;
  for (const Observation& o : tables.observations()) {
    rows.push_back({o.id, fmt::format("{} on {}", o.guest, o.host)});
  }
  return rows;
}

struct Table {
  std::string_view name;
  std::vector<Row> (*rows)(const Tables&);
};

constexpr std::array<Table, 10> all_tables = {{
    {"families", family_rows},
    {"chips", chip_rows},
    {"features", feature_rows},
    {"limits", limit_rows},
    {"queries", query_rows},
    {"hazards", hazard_rows},
    {"apps", app_rows},
    {"verdicts", verdict_rows},
    {"paravirtual", paravirtual_rows},
    {"observations", observation_rows},
}};

}  // namespace

Result<Json> list_tables(const Tables& tables, std::string_view name) {
  Json json = {{"schema", "metaldoctor.table-list/1"}, {"edition", tables.edition()}};
  json["table"] = name;
  json["rows"] = Json::array();
  if (name.empty()) {
    for (const Table& table : all_tables) {
      json["rows"].push_back(
          {{"id", table.name}, {"text", fmt::format("{} rows", table.rows(tables).size())}});
    }
    return json;
  }
  const auto* table = std::ranges::find(all_tables, name, &Table::name);
  if (table == all_tables.end()) {
    return fail(Fault::usage, "unknown-table", "tables", fmt::format("no table '{}'", name),
                "metaldoctor tables lists them");
  }
  for (const Row& row : table->rows(tables)) {
    json["rows"].push_back({{"id", row.id}, {"text", row.text}});
  }
  return json;
}

std::string table_list_text(const Json& list, TextStyle style) {
  std::size_t width = 0;
  for (const Json& row : list.at("rows")) {
    width = std::max(width, row.at("id").get_ref<const std::string&>().size());
  }
  std::string out;
  for (const Json& row : list.at("rows")) {
    const auto id = row.at("id").get<std::string>();
    const std::string pad(width - id.size(), ' ');
    out += fmt::format("{}{}  {}\n", style.paint(TextStyle::Ink::bold, id), pad,
                       wrap(row.at("text").get<std::string>(), width + 2));
  }
  return out;
}

}  // namespace metaldoctor
