#include "scanners/device/capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

namespace metaldoctor {
namespace {

constexpr std::int64_t kExactInteger = std::int64_t{1} << 53;
/// Rows of one list. A probe asks a few hundred questions; what looks a key up does so in turn.
constexpr std::size_t kMostRows = 10'000;

constexpr std::array<std::pair<CaptureSource::Kind, std::string_view>, 4> kSourceKinds{{
    {CaptureSource::Kind::live, "live"},
    {CaptureSource::Kind::log, "log"},
    {CaptureSource::Kind::evidence, "evidence"},
    {CaptureSource::Kind::assumed, "assumed"},
}};

std::string text_of(const Json& object, const char* field) {
  const auto it = object.find(field);
  return it == object.end() || !it->is_string() ? std::string{} : it->get<std::string>();
}

/// Reads one capture document; `name` and the pointers of its parts go into every message.
class CaptureReader {
 public:
  CaptureReader(const Tables& tables, std::string_view name) : tables_(tables), name_(name) {}

  Result<Capture> read(const Json& document);

 private:
  std::string at(std::string_view pointer) const { return fmt::format("{}: {}", name_, pointer); }

  Result<QueryKey> key(const Json& row, const std::string& pointer) const;
  Result<Value> value(const Json& json, const std::string& pointer) const;
  Result<Value> answer_value(const Json& json, const QueryKey& key,
                             const std::string& pointer) const;
  Result<Evidence> evidence(const Json& row, const std::string& pointer) const;
  Result<CaptureSource> source(const Json& row, const std::string& pointer) const;
  Result<void> read_answers(const Json& rows, Capture& capture);
  Result<void> read_facts(const Json& rows, Capture& capture);
  Result<void> read_unknown(const Json& rows, Capture& capture);

  const Tables& tables_;
  std::string_view name_;
  std::set<QueryKey> seen_;
  std::set<std::string> seen_facts_;
};

Result<QueryKey> CaptureReader::key(const Json& row, const std::string& pointer) const {
  QueryKey raw{text_of(row, "query"), {}};
  if (const auto it = row.find("arguments"); it != row.end()) {
    for (const Json& argument : *it) {
      if (!argument.is_number_integer()) {
        return fail(Fault::input, "capture-argument", at(pointer + "/arguments"),
                    "an argument of a query is an integer");
      }
      raw.arguments.push_back(argument.get<std::int64_t>());
    }
  }
  auto canonical = tables_.canonical(raw);
  if (!canonical) {
    // The table's message says what is wrong with the query; only the place is ours to add.
    return fail(Fault::input, canonical.error().code, at(pointer + "/query"),
                canonical.error().what, canonical.error().hint);
  }
  return canonical;
}

Result<Value> CaptureReader::value(const Json& json, const std::string& pointer) const {
  if (json.is_boolean()) return Value{json.get<bool>()};
  if (json.is_number_integer()) return Value{json.get<std::int64_t>()};
  if (json.is_string()) return Value{json.get<std::string>()};
  return fail(Fault::input, "capture-value", at(pointer),
              fmt::format("a value is a boolean, an integer or a text, not {}", json.type_name()));
}

Result<Value> CaptureReader::answer_value(const Json& json, const QueryKey& key,
                                          const std::string& pointer) const {
  const Query* query = tables_.query(key.query);
  const AnswerType type = query ? query->type : AnswerType::text;
  const auto wrong = [&](std::string_view expected) {
    return fail(Fault::input, "capture-answer-type", at(pointer),
                fmt::format("{} answers {}, not {}", key.query, expected, json.type_name()));
  };
  // "Q" and "I" are the unsigned integers of @encode.
  const bool is_unsigned =
      query && !query->encoding_arm64.empty() &&
      std::string_view("QI").find(query->encoding_arm64.front()) != std::string_view::npos;
  const auto checked = [&](std::int64_t number) -> Result<Value> {
    if (number < 0 && is_unsigned) {
      return fail(Fault::input, "capture-answer-range", at(pointer),
                  fmt::format("{} answers an unsigned integer, not {}", key.query, number));
    }
    return Value{number};
  };
  switch (type) {
    case AnswerType::boolean:
      if (!json.is_boolean()) return wrong("yes or no (a JSON boolean)");
      return Value{json.get<bool>()};
    case AnswerType::integer: {
      if (json.is_number_integer()) return checked(json.get<std::int64_t>());
      if (!json.is_string()) return wrong("an integer");
      const std::string text = json.get<std::string>();
      std::int64_t number = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
      if (error != std::errc{} || end != text.data() + text.size()) return wrong("an integer");
      return checked(number);
    }
    case AnswerType::text:
    case AnswerType::structure:
    case AnswerType::object:
      if (!json.is_string()) return wrong("a text");
      return Value{json.get<std::string>()};
  }
  return wrong("something else");
}

Result<Evidence> CaptureReader::evidence(const Json& row, const std::string& pointer) const {
  const std::string text = text_of(row, "evidence");
  const auto level = parse_evidence(text);
  if (!level) {
    return fail(Fault::input, "capture-evidence", at(pointer + "/evidence"),
                fmt::format("'{}' is no evidence level", text));
  }
  return *level;
}

Result<CaptureSource> CaptureReader::source(const Json& row, const std::string& pointer) const {
  CaptureSource source;
  const auto it = row.find("source");
  if (it == row.end()) return source;
  const std::string kind = text_of(*it, "kind");
  const auto found = std::find_if(kSourceKinds.begin(), kSourceKinds.end(),
                                  [&](const auto& entry) { return entry.second == kind; });
  if (found == kSourceKinds.end()) {
    return fail(Fault::input, "capture-source", at(pointer + "/source/kind"),
                fmt::format("'{}' is none of live, log, evidence, assumed", kind));
  }
  source.kind = found->first;
  source.file = text_of(*it, "file");
  source.citation = text_of(*it, "citation");
  if (const auto line = it->find("line"); line != it->end() && line->is_number_unsigned()) {
    source.line = line->get<std::size_t>();
  }
  return source;
}

Result<void> CaptureReader::read_answers(const Json& rows, Capture& capture) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string pointer = fmt::format("/answers/{}", i);
    const Json& row = rows[i];
    auto query = key(row, pointer);
    if (!query) return tl::unexpected(query.error());
    if (!seen_.insert(*query).second) {
      return fail(Fault::input, "capture-duplicate", at(pointer),
                  fmt::format("{} is answered twice", to_string(*query)));
    }
    auto answer = answer_value(row.value("answer", Json{}), *query, pointer + "/answer");
    if (!answer) return tl::unexpected(answer.error());
    auto level = evidence(row, pointer);
    if (!level) return tl::unexpected(level.error());
    auto origin = source(row, pointer);
    if (!origin) return tl::unexpected(origin.error());
    capture.answers.push_back({{*std::move(query), *std::move(answer)}, *level, *origin});
  }
  return {};
}

Result<void> CaptureReader::read_facts(const Json& rows, Capture& capture) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string pointer = fmt::format("/facts/{}", i);
    const Json& row = rows[i];
    std::string fact = text_of(row, "fact");
    if (!seen_facts_.insert(fact).second) {
      return fail(Fault::input, "capture-duplicate", at(pointer),
                  fmt::format("the fact {} is given twice", fact));
    }
    auto content = value(row.value("value", Json{}), pointer + "/value");
    if (!content) return tl::unexpected(content.error());
    auto level = evidence(row, pointer);
    if (!level) return tl::unexpected(level.error());
    auto origin = source(row, pointer);
    if (!origin) return tl::unexpected(origin.error());
    capture.facts.push_back({std::move(fact), *std::move(content), *level, *origin});
  }
  return {};
}

Result<void> CaptureReader::read_unknown(const Json& rows, Capture& capture) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string pointer = fmt::format("/unknown/{}", i);
    auto query = key(rows[i], pointer);
    if (!query) return tl::unexpected(query.error());
    if (!seen_.insert(*query).second) {
      return fail(Fault::input, "capture-duplicate", at(pointer),
                  fmt::format("{} is given twice", to_string(*query)));
    }
    capture.unknown.push_back({*std::move(query), text_of(rows[i], "reason")});
  }
  return {};
}

Result<Capture> CaptureReader::read(const Json& document) {
  Capture capture;
  const Json device = document.value("device", Json::object());
  capture.name = text_of(device, "name");
  capture.architecture = text_of(device, "architecture");
  capture.registry_id = text_of(device, "registry_id");
  const Json system = document.value("system", Json::object());
  capture.system.os = text_of(system, "os");
  if (!capture.system.os.empty() && !parse_os_version(capture.system.os)) {
    return fail(Fault::input, "capture-os", at("/system/os"),
                fmt::format("'{}' is no macOS version such as 26.5.2", capture.system.os),
                "leave it out where it is not known");
  }
  capture.system.build = text_of(system, "build");
  capture.system.hw_model = text_of(system, "hw_model");
  capture.system.cpu_brand = text_of(system, "cpu_brand");
  if (const auto it = system.find("is_virtual"); it != system.end() && it->is_boolean()) {
    capture.system.is_virtual = it->get<bool>();
  }
  for (const char* list : {"answers", "facts", "unknown"}) {
    const auto rows = document.find(list);
    if (rows == document.end() || rows->size() <= kMostRows) continue;
    return fail(Fault::input, "capture-too-large", at(fmt::format("/{}", list)),
                fmt::format("{} rows, more than {}", rows->size(), kMostRows));
  }
  if (auto done = read_answers(document.value("answers", Json::array()), capture); !done) {
    return tl::unexpected(done.error());
  }
  if (auto done = read_facts(document.value("facts", Json::array()), capture); !done) {
    return tl::unexpected(done.error());
  }
  if (auto done = read_unknown(document.value("unknown", Json::array()), capture); !done) {
    return tl::unexpected(done.error());
  }
  add_implied_families(tables_, capture);
  return capture;
}

Json value_json(const Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    // JSON readers hold numbers as doubles; beyond 2^53 they would round without a word.
    if (*number > kExactInteger || *number < -kExactInteger) return std::to_string(*number);
    return *number;
  }
  return nullptr;
}

Json source_json(const CaptureSource& source) {
  const auto* kind = std::find_if(kSourceKinds.begin(), kSourceKinds.end(),
                                  [&](const auto& entry) { return entry.first == source.kind; });
  Json json{{"kind", kind->second}};
  if (!source.file.empty()) json["file"] = source.file;
  if (source.line) json["line"] = *source.line;
  if (!source.citation.empty()) json["citation"] = source.citation;
  return json;
}

Json key_json(const QueryKey& key) {
  return {{"query", key.query}, {"arguments", key.arguments}};
}

void put(Json& object, const char* field, const std::string& text) {
  if (!text.empty()) object[field] = text;
}

}  // namespace

const CapturedAnswer* Capture::find(const QueryKey& key) const {
  const auto it = std::find_if(answers.begin(), answers.end(),
                               [&](const auto& row) { return row.answer.key == key; });
  return it == answers.end() ? nullptr : &*it;
}

const CapturedFact* Capture::fact(std::string_view wanted) const {
  const auto it =
      std::find_if(facts.begin(), facts.end(), [&](const auto& row) { return row.fact == wanted; });
  return it == facts.end() ? nullptr : &*it;
}

Value Capture::answer(const QueryKey& key) const {
  const CapturedAnswer* row = find(key);
  return row ? row->answer.value : Value{};
}

std::optional<bool> Capture::is_guest() const {
  // The device's name is "Apple Paravirtual device" or "Apple Paravirtualized Graphics Device";
  // the CPU brand of a guest is the host chip's with " (Virtual)"; hw.model is VirtualMacN,M.
  if (name.find("Paravirtual") != std::string::npos) return true;
  if (system.cpu_brand.ends_with("(Virtual)")) return true;
  if (system.hw_model.starts_with("VirtualMac")) return true;
  // Only now: no bare Mac has one of the signs above, whatever the input says of itself.
  if (system.is_virtual) return system.is_virtual;
  // "Apple M1 Ultra" is the name of a real GPU. One of another maker may be passed through to a
  // guest, and what else begins with "Apple " may be a paravirtual name that was cut short.
  if (name.starts_with("Apple M") || name.starts_with("Apple A")) return false;
  return std::nullopt;
}

OsKnowledge Capture::os(const Tables& tables) const {
  OsKnowledge knowledge;
  knowledge.assumed = tables.newest_macos();
  knowledge.exact = parse_os_version(system.os);
  if (knowledge.exact) knowledge.exact = true_macos(*knowledge.exact);
  if (const CapturedFact* bound = fact("os_at_least")) {
    if (const auto* text = std::get_if<std::string>(&bound->value)) {
      knowledge.at_least = parse_os_version(*text);
    }
  }
  // A real device answers yes to a family only on a macOS that has it; a guest's answer may have
  // been overridden and proves nothing.
  if (is_guest() != false || knowledge.exact) return knowledge;
  for (const Family& family : tables.families()) {
    if (answer({"supportsFamily:", {family.value}}) != Value{true}) continue;
    if (!knowledge.at_least || *knowledge.at_least < family.min_macos) {
      knowledge.at_least = family.min_macos;
    }
  }
  return knowledge;
}

void add_implied_families(const Tables& tables, Capture& capture) {
  std::map<std::int64_t, std::string_view> implied;  // and by which
  for (const CapturedAnswer& row : capture.answers) {
    if (row.answer.key.query != "supportsFamily:" || row.answer.value != Value{true}) continue;
    const Family* family = tables.family(row.answer.key.arguments.front());
    if (family == nullptr) continue;
    for (const std::string& name : family->implies) {
      const Family* lower = tables.family(name);
      if (lower != nullptr) implied.try_emplace(lower->value, family->short_name);
    }
  }
  for (const auto& [value, by] : implied) {
    QueryKey key{"supportsFamily:", {value}};
    if (capture.find(key) != nullptr) continue;
    std::erase_if(capture.unknown, [&](const UnknownAnswer& row) { return row.key == key; });
    capture.answers.push_back(
        {{std::move(key), true},
         Evidence::inferred,
         {CaptureSource::Kind::assumed, {}, {}, fmt::format("{} implies it", by)}});
  }
}

Result<Capture> read_capture(const Tables& tables, std::string_view text, std::string_view name) {
  auto document = read_document(text, "capture", name);
  if (!document) return tl::unexpected(document.error());
  return CaptureReader(tables, name).read(*document);
}

Json to_json(const Capture& capture) {
  Json json{{"schema", "metaldoctor.capture/1"}};
  Json device = Json::object();
  put(device, "name", capture.name);
  put(device, "architecture", capture.architecture);
  put(device, "registry_id", capture.registry_id);
  json["device"] = std::move(device);
  Json system = Json::object();
  put(system, "os", capture.system.os);
  put(system, "build", capture.system.build);
  put(system, "hw_model", capture.system.hw_model);
  put(system, "cpu_brand", capture.system.cpu_brand);
  if (capture.system.is_virtual) system["is_virtual"] = *capture.system.is_virtual;
  json["system"] = std::move(system);
  json["answers"] = Json::array();
  for (const CapturedAnswer& row : capture.answers) {
    Json entry = key_json(row.answer.key);
    entry["answer"] = value_json(row.answer.value);
    entry["evidence"] = to_string(row.evidence);
    entry["source"] = source_json(row.source);
    json["answers"].push_back(std::move(entry));
  }
  json["facts"] = Json::array();
  for (const CapturedFact& row : capture.facts) {
    json["facts"].push_back({{"fact", row.fact},
                             {"value", value_json(row.value)},
                             {"evidence", to_string(row.evidence)},
                             {"source", source_json(row.source)}});
  }
  json["unknown"] = Json::array();
  for (const UnknownAnswer& row : capture.unknown) {
    Json entry = key_json(row.key);
    entry["reason"] = row.reason;
    json["unknown"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace metaldoctor
