#include <fmt/format.h>

#include <algorithm>

#include "scanners/simulator/protocol.h"

namespace metaldoctor {
namespace {

/// Text of a program may hold any bytes; JSON holds UTF-8.
std::string utf8(const std::string& text) {
  if (std::ranges::all_of(text, [](unsigned char c) { return c < 0x80; })) return text;
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80    ? 1
                               : lead >= 0xf0 ? 4
                               : lead >= 0xe0 ? 3
                               : lead >= 0xc2 ? 2
                                              : 0;
    bool whole = length != 0 && lead < 0xf5 && i + length <= text.size();
    for (std::size_t k = 1; whole && k < length; ++k)
      whole = (static_cast<unsigned char>(text[i + k]) & 0xc0) == 0x80;
    if (whole && Json::accept(fmt::format("\"{}\"", lead < 0x80 ? "x" : text.substr(i, length)))) {
      out += text.substr(i, length);
      i += length;
    } else {
      out += fmt::format("\\x{:02x}", lead);
      ++i;
    }
  }
  return out;
}

/// Integers beyond 2^53 are decimal strings in every document.
Json number(std::int64_t value) {
  constexpr std::int64_t exact = std::int64_t{1} << 53;
  if (value > exact || value < -exact) return std::to_string(value);
  return value;
}

std::string hex(const std::vector<std::uint8_t>& bytes) {
  std::string out;
  for (const std::uint8_t byte : bytes) out += fmt::format("{:02x}", byte);
  return out;
}

Json to_json(const SimQuery& query) {
  Json json = {{"query", query.key.query}, {"arguments", Json::array()}, {"device", query.device}};
  for (const std::int64_t argument : query.key.arguments)
    json["arguments"].push_back(number(argument));
  if (query.text.empty())
    json["answer"] = number(query.answer);
  else
    json["answer"] = utf8(query.text);
  json["caller"] = query.caller;
  json["count"] = query.count;
  return json;
}

Json list(const std::vector<std::string>& texts) {
  Json json = Json::array();
  for (const std::string& text : texts) json.push_back(utf8(text));
  return json;
}

Json map_of(const std::map<std::string, std::string>& texts) {
  Json json = Json::object();
  for (const auto& [name, text] : texts) json[utf8(name)] = utf8(text);
  return json;
}

Json writes_of(const Trace& trace) {
  Json json = Json::array();
  for (const SimWrite& write : trace.writes) {
    Json row = {
        {"object", utf8(write.object)}, {"offset", write.offset}, {"bytes", hex(write.bytes)}};
    for (const auto& [offset, name] : write.pointers)
      row["pointers"][std::to_string(offset)] = utf8(name);
    json.push_back(std::move(row));
  }
  return json;
}

Json to_json(const Trace& trace) {
  Json json = {{"id", trace.id}};
  if (trace.stop)
    json["stop"] = {{"kind", trace.stop->kind},
                    {"text", utf8(trace.stop->text)},
                    {"where", utf8(trace.stop->where)}};
  json["results"] = Json::array();
  for (const std::uint64_t result : trace.results)
    json["results"].push_back(std::to_string(result));
  if (trace.exit_status) json["exit_status"] = *trace.exit_status;
  json["instructions"] = trace.instructions;
  json["blocks"] = trace.path.size();
  for (const char* field : {"queries", "messages", "log", "imports", "overrides"})
    json[field] = Json::array();
  for (const SimQuery& query : trace.queries) json["queries"].push_back(to_json(query));
  for (const auto& [family, count] : trace.metal_family_queries)
    json["metal_family_queries"][std::to_string(family)] = count;
  json["metal_features"] = list(trace.metal_features);
  json["events"] = list(trace.events);
  for (const SimMessage& message : trace.messages)
    json["messages"].push_back({{"text", utf8(message.text)}, {"count", message.count}});
  for (const SimLogLine& line : trace.log)
    json["log"].push_back({{"stream", line.stream}, {"text", utf8(line.text)}});
  for (const SimImport& import : trace.imports)
    json["imports"].push_back({{"name", utf8(import.name)},
                               {"fidelity", to_string(import.fidelity)},
                               {"calls", import.calls}});
  for (const SimOverride& one : trace.overrides)
    json["overrides"].push_back({{"class", one.class_name},
                                 {"selector", utf8(one.selector)},
                                 {"types", utf8(one.types)},
                                 {"implementation", utf8(one.implementation)},
                                 {"added", one.added}});
  json["writes"] = writes_of(trace);
  json["files_written"] = map_of(trace.files_written);
  json["environment"] = map_of(trace.environment);
  json["assumptions"] = list(trace.assumptions);
  return json;
}

Json lines_of(const std::vector<SimDifference::Line>& lines) {
  Json json = Json::array();
  for (const auto& line : lines)
    json.push_back({{"before", utf8(line.before)}, {"after", utf8(line.after)}});
  return json;
}

Json to_json(const SimDifference& difference) {
  constexpr std::string_view verdicts[] = {"differs", "no-difference-observed", "inconclusive"};
  Json json = {{"from", difference.from},
               {"to", difference.to},
               {"verdict", verdicts[static_cast<std::size_t>(difference.verdict)]},
               {"bytes", Json::array()}};
  for (const auto& byte : difference.bytes)
    json["bytes"].push_back(
        {{"where", utf8(byte.where)}, {"before", utf8(byte.before)}, {"after", utf8(byte.after)}});
  json["log"] = lines_of(difference.log);
  json["messages"] = lines_of(difference.messages);
  json["queries"] = list(difference.queries_changed);
  json["metal_features_gained"] = list(difference.features_gained);
  json["metal_features_lost"] = list(difference.features_lost);
  json["first_branch"] = difference.first_branch;
  json["only_before"] = list(difference.only_before);
  json["only_after"] = list(difference.only_after);
  return json;
}

}  // namespace

Json to_json(const SimResult& result) {
  Json json = {{"schema", "metaldoctor.sim-result/1"}, {"evidence", "executed"}};
  for (const char* field : {"runs", "differences"}) json[field] = Json::array();
  for (const Trace& trace : result.runs) json["runs"].push_back(to_json(trace));
  for (const SimDifference& difference : result.differences)
    json["differences"].push_back(to_json(difference));
  json["assumptions"] = list(result.assumptions);
  return json;
}

}  // namespace metaldoctor
