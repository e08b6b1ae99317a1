// Readers of what devices are asked and what is known of the answers.
#include <array>

#include "tables/table_source.h"

namespace metaldoctor {
namespace {

constexpr std::array<std::pair<std::string_view, AnswerType>, 5> kAnswerTypes{{
    {"boolean", AnswerType::boolean},
    {"integer", AnswerType::integer},
    {"text", AnswerType::text},
    {"structure", AnswerType::structure},
    {"object", AnswerType::object},
}};

constexpr std::array<std::pair<std::string_view, HazardAnswer::When>, 3> kWhens{{
    {"raised", HazardAnswer::When::raised},
    {"above_table", HazardAnswer::When::above_table},
    {"above_host", HazardAnswer::When::above_host},
}};

template <typename Table>
auto look_up(const Table& table, std::string_view name) {
  for (const auto& [text, value] : table) {
    if (text == name) return value;
  }
  return table.front().second;  // the schema lists the same names
}

std::optional<std::int64_t> optional_integer(const Json& row, const char* key) {
  const auto found = row.find(key);
  if (found == row.end() || found->is_null()) return std::nullopt;
  return found->get<std::int64_t>();
}

KnownAnswer read_known(const Json& row) {
  return {optional_integer(row, "argument"), value_of(row.at("answer")),
          optional_text(row, "apple"), optional_text(row, "mac"), read_provenance(row)};
}

}  // namespace

Result<Query> read_query(const Json& row) {
  Query query;
  query.selector = row.at("selector").get<std::string>();
  query.aliases = texts_of(row, "aliases");
  query.type = look_up(kAnswerTypes, text_of(row, "type"));
  if (const auto wire = optional_integer(row, "wire")) query.wire = static_cast<int>(*wire);
  query.overridable = query.wire.has_value();
  query.safe_to_ask = row.value("safe_to_ask", false);
  query.argument = text_of(row, "argument");
  query.encoding_arm64 = text_of(row, "encoding_arm64");
  query.unit = text_of(row, "unit");
  query.min_macos = version_of(row, "min_macos");
  query.feature = text_of(row, "feature");
  query.limit = text_of(row, "limit");
  for (const Json& known : row.value("known", Json::array())) {
    query.known.push_back(read_known(known));
  }
  query.known_arguments = row.value("known_arguments", std::vector<std::int64_t>());
  query.expected = text_of(row, "expected");
  query.provenance = read_provenance(row);
  return query;
}

Result<Hazard> read_hazard(const Json& row) {
  Hazard hazard;
  hazard.id = row.at("id").get<std::string>();
  for (const Json& answer : row.at("answers")) {
    hazard.answers.push_back({text_of(answer, "query"), optional_integer(answer, "argument"),
                              look_up(kWhens, text_of(answer, "when"))});
  }
  hazard.scope =
      text_of(row, "scope") == "program" ? Hazard::Scope::program : Hazard::Scope::process;
  hazard.programs = texts_of(row, "programs");
  hazard.or_gate_sends = texts_of(row, "or_gate_sends");
  if (const auto os = row.find("os"); os != row.end()) {
    hazard.os_from = optional_version(*os, "from");
    hazard.os_to = optional_version(*os, "to");
  }
  hazard.effect = text_of(row, "effect");
  hazard.provenance = read_provenance(row);
  return hazard;
}

Result<Verdict> read_verdict(const Json& row) {
  Verdict verdict;
  verdict.id = row.at("id").get<std::string>();
  verdict.is_word = row.at("word").get<bool>();
  verdict.meaning = text_of(row, "meaning");
  verdict.advice = text_of(row, "advice");
  verdict.provenance = read_provenance(row);
  return verdict;
}

Result<ParavirtualAnswer> read_paravirtual(const Json& row) {
  ParavirtualAnswer answer;
  answer.answer.key.query = row.at("query").get<std::string>();
  answer.answer.key.arguments = row.value("arguments", std::vector<std::int64_t>());
  answer.answer.value = value_of(row.at("answer"));
  answer.provenance = read_provenance(row);
  return answer;
}

Result<Observation> read_observation(const Json& row) {
  return Observation{row.at("id").get<std::string>(), text_of(row, "guest"), text_of(row, "host"),
                     text_of(row, "text"), texts_of(row, "sources")};
}

Result<LogGrammar> read_log_grammar(const Json& row) {
  LogGrammar grammar;
  grammar.id = row.at("id").get<std::string>();
  grammar.prefixes = texts_of(row, "prefixes");
  for (const Json& item : row.at("items")) {
    grammar.items.push_back({item.at("key").get<std::string>(), text_of(item, "form"),
                             text_of(item, "yields"), item.value("detail", Json::object())});
  }
  grammar.provenance = read_provenance(row);
  return grammar;
}

}  // namespace metaldoctor
