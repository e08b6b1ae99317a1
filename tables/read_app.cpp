// Reader of apps/<id>.json: a program, its release ranges and the rules of each.
#include "tables/table_source.h"

namespace metaldoctor {
namespace {

Rule::Side read_side(const std::string& text) {
  if (text == "gain") return Rule::Side::gain;
  return text == "harm" ? Rule::Side::harm : Rule::Side::neutral;
}

Result<Rule> read_rule(const Json& row, const std::string& where) {
  Rule rule;
  rule.id = row.at("id").get<std::string>();
  auto predicate = Predicate::parse(row.at("predicate").get<std::string>(), where + "/predicate");
  if (!predicate) return tl::unexpected(predicate.error());
  rule.predicate = std::move(*predicate);
  rule.opens = text_of(row, "opens");
  rule.side = read_side(text_of(row, "side"));
  rule.effect = text_of(row, "effect");
  rule.kernels = texts_of(row, "kernels");
  rule.log_lines = texts_of(row, "log_lines");
  rule.hazards_if_forced = texts_of(row, "hazards_if_forced");
  rule.provenance = read_provenance(row);
  return rule;
}

Result<AppRange> read_range(const Json& row, const std::string& where) {
  AppRange range;
  range.id = row.at("id").get<std::string>();
  range.title = text_of(row, "title");
  range.aliases = texts_of(row, "aliases");
  range.includes = texts_of(row, "includes");
  range.notes = text_of(row, "notes");
  range.provenance = read_provenance(row);
  for (const Json& ask : row.value("asks", Json::array())) {
    range.asks.push_back(
        {text_of(ask, "query"), ask.value("arguments", std::vector<std::int64_t>())});
  }
  std::size_t index = 0;
  for (const Json& row_rule : row.value("rules", Json::array())) {
    auto rule = read_rule(row_rule, where + "/rules/" + std::to_string(index++));
    if (!rule) return tl::unexpected(rule.error());
    range.rules.push_back(std::move(*rule));
  }
  return range;
}

ReleaseLine read_release_line(const Json& row) {
  ReleaseLine line{texts_of(row, "programs"), {}, read_provenance(row)};
  for (const Json& span : row.at("spans")) {
    line.spans.push_back({text_of(span, "range"), text_of(span, "from"), text_of(span, "to")});
  }
  return line;
}

}  // namespace

Result<App> read_app(const Json& file) {
  App app;
  app.id = file.at("id").get<std::string>();
  app.name = text_of(file, "name");
  app.aliases = texts_of(file, "aliases");
  for (const Json& marker : file.value("markers", Json::array())) {
    app.markers.push_back({text_of(marker, "kind"), text_of(marker, "match"),
                           text_of(marker, "from"), text_of(marker, "to"),
                           text_of(marker, "note")});
  }
  for (const Json& variable : file.value("env", Json::array())) {
    app.env.emplace_back(text_of(variable, "name"), text_of(variable, "does"));
  }
  for (const Json& line : file.value("releases", Json::array())) {
    app.releases.push_back(read_release_line(line));
  }
  std::size_t index = 0;
  for (const Json& row : file.at("rows")) {
    auto range = read_range(row, "/rows/" + std::to_string(index++));
    if (!range) return tl::unexpected(range.error());
    app.ranges.push_back(std::move(*range));
  }
  return app;
}

}  // namespace metaldoctor
