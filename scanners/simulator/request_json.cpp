#include <fmt/format.h>

#include <array>
#include <charconv>

#include "scanners/simulator/protocol.h"

namespace metaldoctor {
namespace {

/// Reads a request that its schema has accepted: fields exist and have their types.
class RequestReader {
 public:
  RequestReader(const Tables& tables, std::string_view name) : tables_(tables), name_(name) {}

  Result<SimRequestDocument> read(const Json& json);

 private:
  tl::unexpected<Diagnostic> bad(std::string_view pointer, std::string what) const {
    return fail(Fault::input, "simulator-request", fmt::format("{}: {}", name_, pointer),
                std::move(what));
  }
  Result<SimDevice> device(const Json& json, const std::string& pointer) const;
  Result<Capture> capture(const Json& json, const std::string& pointer) const;
  Result<QueryKey> key(const Json& json, const std::string& pointer) const;
  Result<SimStep> step(const Json& json, const std::string& pointer) const;
  Result<SimRun> run(const Json& json, const std::string& pointer) const;
  Result<void> image(const Json& json, const std::string& pointer, SimRequestDocument& into) const;
  std::vector<QueryKey> known_queries() const;

  const Tables& tables_;
  std::string_view name_;
};

template <typename T, std::size_t N>
T word(const std::array<std::pair<std::string_view, T>, N>& words, const Json& json) {
  for (const auto& [text, value] : words)
    if (json == text) return value;
  return words[0].second;
}

constexpr std::array<std::pair<std::string_view, SimMetal>, 3> metal_words = {
    {{"linked", SimMetal::linked}, {"start", SimMetal::start}, {"never", SimMetal::never}}};
constexpr std::array<std::pair<std::string_view, SimDevice::Wrapper>, 3> wrapper_words = {
    {{"none", SimDevice::Wrapper::none},
     {"debug", SimDevice::Wrapper::debug},
     {"capture", SimDevice::Wrapper::capture}}};
constexpr std::array<std::pair<std::string_view, SimStep::Kind>, 5> step_words = {
    {{"call", SimStep::Kind::call},
     {"initializers", SimStep::Kind::initializers},
     {"main", SimStep::Kind::main},
     {"ask", SimStep::Kind::ask},
     {"unload", SimStep::Kind::unload}}};

Result<Capture> RequestReader::capture(const Json& json, const std::string& pointer) const {
  std::string text;
  if (json.is_string()) {
    const auto built_in = tables_.capture_text(json.get<std::string>());
    if (!built_in) return bad(pointer, fmt::format("there is no built-in capture {}", json.dump()));
    text = *built_in;
  } else {
    text = json.dump();
  }
  return read_capture(tables_, text, fmt::format("{}: {}", name_, pointer));
}

Result<SimDevice> RequestReader::device(const Json& json, const std::string& pointer) const {
  auto read = capture(json.at("capture"), pointer + "/capture");
  if (!read) return tl::unexpected(read.error());
  SimDevice device;
  device.capture = *std::move(read);
  device.driver = json.value("driver", std::string{});
  if (json.contains("wrapper")) device.wrapper = word(wrapper_words, json.at("wrapper"));
  return device;
}

Result<QueryKey> RequestReader::key(const Json& json, const std::string& pointer) const {
  QueryKey key{json.at("query"), json.value("arguments", std::vector<std::int64_t>{})};
  auto canonical = tables_.canonical(key);
  if (!canonical) return bad(pointer, canonical.error().what);
  return canonical;
}

std::vector<QueryKey> RequestReader::known_queries() const {
  std::vector<QueryKey> keys;
  for (const Query& query : tables_.queries()) {
    if (!query.safe_to_ask) continue;
    if (query.argument.empty()) keys.push_back({query.selector, {}});
    for (const std::int64_t argument : query.known_arguments)
      keys.push_back({query.selector, {argument}});
  }
  return keys;
}

Result<SimStep> RequestReader::step(const Json& json, const std::string& pointer) const {
  SimStep step;
  step.kind = word(step_words, json.at("do"));
  step.image = json.value("image", std::string{});
  step.symbol = json.value("symbol", std::string{});
  if (json.contains("address")) step.address = json.at("address").get<std::uint64_t>();
  step.argv = json.value("argv", std::vector<std::string>{});
  if (step.kind == SimStep::Kind::call && step.symbol.empty() && !step.address)
    return bad(pointer, "a call needs a symbol or an address");
  for (const Json& argument : json.value("arguments", Json::array())) {
    if (argument.is_number_integer()) step.arguments.emplace_back(argument.get<std::int64_t>());
    if (argument.is_string()) step.arguments.emplace_back(argument.get<std::string>());
    if (argument.contains("step")) step.arguments.emplace_back(SimStepResult{argument.at("step")});
    if (argument.contains("buffer")) step.arguments.emplace_back(SimBuffer{argument.at("buffer")});
  }
  const Json queries = json.value("queries", Json());
  if (queries == "known") step.queries = known_queries();
  for (std::size_t i = 0; queries.is_array() && i < queries.size(); ++i) {
    auto read = key(queries[i], fmt::format("{}/queries/{}", pointer, i));
    if (!read) return tl::unexpected(read.error());
    step.queries.push_back(*std::move(read));
  }
  return step;
}

Result<SimRun> RequestReader::run(const Json& json, const std::string& pointer) const {
  SimRun run;
  run.id = json.at("id");
  run.environment = json.value("environment", std::map<std::string, std::string>{});
  const Json answers = json.value("answers", Json::array());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const std::string at = fmt::format("{}/answers/{}", pointer, i);
    auto read = key(answers[i], at);
    if (!read) return tl::unexpected(read.error());
    const Json& given = answers[i].at("answer");
    Value value;
    if (given.is_boolean()) value = given.get<bool>();
    if (given.is_number_integer()) value = given.get<std::int64_t>();
    if (given.is_string()) value = given.get<std::string>();
    run.answers.push_back({*std::move(read), std::move(value)});
  }
  return run;
}

/// Not checked by a pattern in the schema: regular expressions recurse for every character.
Result<void> RequestReader::image(const Json& json, const std::string& pointer,
                                  SimRequestDocument& into) const {
  const std::string path = json.is_string() ? json : json.at("path");
  std::vector<std::uint8_t> bytes;
  if (json.is_object()) {
    const std::string& hex = json.at("bytes").get_ref<const std::string&>();
    if (hex.size() % 2 || hex.find_first_not_of("0123456789abcdef") != hex.npos)
      return bad(pointer + "/bytes", "expected pairs of hexadecimal digits in lower case");
    bytes.resize(hex.size() / 2);
    for (std::size_t i = 0; i < bytes.size(); ++i)
      std::from_chars(hex.data() + 2 * i, hex.data() + 2 * i + 2, bytes[i], 16);
  }
  into.image_files.push_back(path);
  into.contents.push_back(std::move(bytes));
  into.request.images.push_back({path, into.contents.back()});
  return {};
}

template <typename T, typename Read>
Result<void> read_list(const Json& json, const char* field, std::vector<T>& into, Read read) {
  const Json list = json.value(field, Json::array());
  for (std::size_t i = 0; i < list.size(); ++i) {
    auto one = read(list[i], fmt::format("/{}/{}", field, i));
    if (!one) return tl::unexpected(one.error());
    into.push_back(*std::move(one));
  }
  return {};
}

Result<SimRequestDocument> RequestReader::read(const Json& json) {
  SimRequestDocument document;
  SimRequest& request = document.request;
  for (std::size_t i = 0; i < json.at("images").size(); ++i) {
    auto read = image(json.at("images")[i], fmt::format("/images/{}", i), document);
    if (!read) return tl::unexpected(read.error());
  }
  for (const Json& method : json.value("system", Json::array())) {
    request.system.push_back({method.at("class"), method.at("selector"), {}});
    if (method.contains("types")) request.system.back().types = method.at("types");
  }
  request.arch = json.value("arch", std::string{});
  if (json.contains("metal")) request.metal = word(metal_words, json.at("metal"));
  request.environment = json.value("environment", std::map<std::string, std::string>{});
  request.files = json.value("files", std::map<std::string, std::string>{});
  const Json budget = json.value("budget", Json::object());
  SimBudget& limits = request.budget;
  limits.instructions = budget.value("instructions", limits.instructions);
  limits.memory = budget.value("memory", limits.memory);
  limits.milliseconds = budget.value("milliseconds", limits.milliseconds);
  limits.call_depth = budget.value("call_depth", limits.call_depth);
  limits.log_bytes = budget.value("log_bytes", limits.log_bytes);
  const auto devices = read_list(json, "devices", request.devices,
                                 [&](const Json& j, const std::string& p) { return device(j, p); });
  if (!devices) return tl::unexpected(devices.error());
  const auto steps = read_list(json, "steps", request.steps,
                               [&](const Json& j, const std::string& p) { return step(j, p); });
  if (!steps) return tl::unexpected(steps.error());
  const auto runs = read_list(json, "runs", request.runs,
                              [&](const Json& j, const std::string& p) { return run(j, p); });
  if (!runs) return tl::unexpected(runs.error());
  return document;
}

}  // namespace

Result<SimRequestDocument> read_sim_request(const Tables& tables, std::string_view text,
                                            std::string_view name) {
  auto json = read_document(text, "sim-request", name);
  if (!json) return tl::unexpected(json.error());
  try {
    return RequestReader(tables, name).read(*json);
  } catch (const nlohmann::json::exception& e) {
    return fail(Fault::input, "simulator-request", std::string(name), e.what());
  }
}

}  // namespace metaldoctor
