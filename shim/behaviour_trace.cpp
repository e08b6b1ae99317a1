#include "shim/behaviour_trace.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

namespace metaldoctor {
namespace {

std::int64_t integer_of(const Json& json) {
  if (json.is_number_integer()) return json.get<std::int64_t>();
  const std::string& text = json.get_ref<const std::string&>();
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string text_of(const Json& json) {
  return json.is_string() ? json.get<std::string>() : std::to_string(json.get<std::int64_t>());
}

/// Questions that the library itself asks are not those of the program.
bool is_from_program(const Json& query) {
  return query.at("caller").get_ref<const std::string&>().starts_with("program");
}

BehaviourTrace read_trace(const Json& json) {
  BehaviourTrace trace;
  trace.id = json.at("id");
  if (json.contains("stop")) {
    const Json& stop = json.at("stop");
    trace.stop = fmt::format("{}: {} at {}", text_of(stop.at("kind")), text_of(stop.at("text")),
                             text_of(stop.at("where")));
  }
  for (const Json& query : json.at("queries")) {
    if (!is_from_program(query)) continue;
    QueryKey key{query.at("query"), {}};
    for (const Json& argument : query.at("arguments"))
      key.arguments.push_back(integer_of(argument));
    trace.answers[{query.at("device").get<std::size_t>(), key}].insert(text_of(query.at("answer")));
  }
  for (const Json& row : json.at("overrides"))
    trace.methods.push_back(
        {row.at("class"), row.at("selector"), row.at("types"), row.at("implementation")});
  for (const Json& row : json.at("imports")) {
    if (row.at("calls").get<std::uint64_t>() == 0) continue;
    trace.imports.push_back(row.at("name"));
    const std::string& fidelity = row.at("fidelity").get_ref<const std::string&>();
    if (fidelity == "assumed" || fidelity == "unknown")
      trace.imports_guessed.push_back(row.at("name"));
  }
  for (const Json& row : json.at("log")) trace.log.push_back(row.at("text"));
  for (const Json& row : json.at("writes")) trace.written_objects.push_back(row.at("object"));
  trace.files = json.value("files_written", trace.files);
  trace.environment = json.value("environment", trace.environment);
  trace.metal_features = json.value("metal_features", trace.metal_features);
  trace.instructions = json.at("instructions");
  return trace;
}

std::string answer_text(const Tables& tables, const QueryKey& key,
                        const std::set<std::string>& answers) {
  const Query* query = tables.query(key.query);
  const bool boolean = query && query->type == AnswerType::boolean;
  std::vector<std::string> texts;
  for (const std::string& answer : answers) {
    texts.push_back(!boolean ? answer : answer == "0" ? "no" : "yes");
  }
  return answers.empty() ? "nothing" : fmt::format("{}", fmt::join(texts, " and "));
}

std::string number_text(const Value& value) {
  if (const bool* truth = std::get_if<bool>(&value)) return *truth ? "1" : "0";
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  return {};
}

}  // namespace

Result<std::vector<BehaviourTrace>> read_traces(const Tables&, const Json& result) {
  if (auto valid = validate_document(result, "sim-result", "simulator"); !valid) {
    return tl::unexpected(valid.error());
  }
  std::vector<BehaviourTrace> traces;
  for (const Json& run : result.at("runs")) traces.push_back(read_trace(run));
  return traces;
}

std::vector<AnswerDifference> differences(const Tables& tables, const AnswerTable& from,
                                          const AnswerTable& to, std::size_t device) {
  static const std::set<std::string> none;
  std::vector<AnswerDifference> out;
  std::set<QueryKey> keys;
  for (const AnswerTable* table : {&from, &to}) {
    for (const auto& [place, answers] : *table) {
      if (place.first == device) keys.insert(place.second);
    }
  }
  for (const QueryKey& key : keys) {
    const auto before = from.find({device, key}), after = to.find({device, key});
    const auto& was = before == from.end() ? none : before->second;
    const auto& is = after == to.end() ? none : after->second;
    if (was == is) continue;
    out.push_back({key, fmt::format("{} {} -> {}", to_string(key), answer_text(tables, key, was),
                                    answer_text(tables, key, is))});
  }
  return out;
}

AnswerTable with_changes(AnswerTable answers, const std::vector<Answer>& changes,
                         std::size_t device) {
  for (const Answer& change : changes) {
    answers[{device, change.key}] = {number_text(change.value)};
  }
  return answers;
}

std::size_t asked_of(const AnswerTable& answers, std::size_t device) {
  return static_cast<std::size_t>(std::ranges::count_if(
      answers, [&](const auto& entry) { return entry.first.first == device; }));
}

std::string first_few(const std::vector<std::string>& texts, std::size_t most) {
  const std::size_t shown = std::min(most, texts.size());
  std::string text = fmt::format("{}", fmt::join(texts.begin(), texts.begin() + shown, ", "));
  if (texts.size() > shown) text += fmt::format(" and {} more", texts.size() - shown);
  return text;
}

}  // namespace metaldoctor
