#include "shim/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

namespace metaldoctor {

namespace {

constexpr std::int64_t kExactInteger = std::int64_t{1} << 53;

constexpr std::array<std::string_view, 2> kCallers{"all", "app"};
constexpr std::array<std::string_view, 2> kScopes{"process", "tree"};
constexpr std::array<std::string_view, 4> kReasonsToLeave{"same-as-host", "not-asked", "above-host",
                                                          "not-needed"};

std::string text_of(const Json& object, const char* field) {
  const auto found = object.find(field);
  return found == object.end() ? std::string() : found->get<std::string>();
}

std::vector<std::string> texts_of(const Json& object, const char* field) {
  const auto found = object.find(field);
  return found == object.end() ? std::vector<std::string>()
                               : found->get<std::vector<std::string>>();
}

/// Reads a document that its schema has accepted: what is left to check is what a schema cannot.
class ProfileReader {
 public:
  ProfileReader(const Tables& tables, std::string_view name) : tables_(tables), name_(name) {}

  Result<Profile> read(const Json& json) {
    Profile profile;
    const Json& bound = json["bound"];
    profile.bound = {text_of(bound, "chip"), text_of(bound, "os"), text_of(bound, "table_edition")};
    profile.callers =
        text_of(json, "callers") == "app" ? Profile::Callers::app : Profile::Callers::all;
    profile.scope =
        text_of(json, "scope") == "tree" ? Profile::Scope::tree : Profile::Scope::process;
    profile.accepted_hazards = texts_of(json, "accepted_hazards");
    for (std::size_t i = 0; i < json["changes"].size(); ++i) {
      auto change = read_change(json["changes"][i], fmt::format("/changes/{}", i));
      if (!change) return tl::unexpected(std::move(change).error());
      profile.changes.push_back(*std::move(change));
    }
    if (!json.contains("left_alone")) return profile;
    for (std::size_t i = 0; i < json["left_alone"].size(); ++i) {
      const Json& row = json["left_alone"][i];
      auto key = read_key(row, fmt::format("/left_alone/{}", i));
      if (!key) return tl::unexpected(std::move(key).error());
      const std::string why = text_of(row, "why");
      if (!is_reason(why)) {
        return error("profile-why", fmt::format("/left_alone/{}/why", i),
                     fmt::format("expected {} or hazard:ID, found '{}'",
                                 fmt::join(kReasonsToLeave, ", "), why));
      }
      profile.left_alone.push_back(
          {*std::move(key), why, text_of(row, "detail"), evidence_of(row)});
    }
    return profile;
  }

 private:
  tl::unexpected<Diagnostic> error(std::string code, const std::string& pointer, std::string what,
                                   std::string hint = {}) const {
    return fail(Fault::input, std::move(code), fmt::format("{}: {}", name_, pointer),
                std::move(what), std::move(hint));
  }

  static bool is_reason(std::string_view why) {
    constexpr std::string_view hazard = "hazard:";
    if (why.starts_with(hazard)) return why.size() > hazard.size();
    return std::find(kReasonsToLeave.begin(), kReasonsToLeave.end(), why) != kReasonsToLeave.end();
  }

  static Evidence evidence_of(const Json& row) {
    return parse_evidence(text_of(row, "evidence")).value_or(Evidence::unknown);
  }

  /// A question as it was left alone may lack its argument: the program computed it.
  Result<QueryKey> read_key(const Json& row, const std::string& pointer) const {
    QueryKey key{text_of(row, "query"), {}};
    if (row.contains("arguments")) {
      key.arguments = row["arguments"].get<std::vector<std::int64_t>>();
    }
    const Query* query = tables_.query(key.query);
    if (query && key.arguments.empty()) return QueryKey{query->selector, {}};
    auto canonical = tables_.canonical(key);
    if (canonical) return canonical;
    return error(canonical.error().code, pointer, canonical.error().what, canonical.error().hint);
  }

  Result<Value> read_answer(const Json& json, const Query& query,
                            const std::string& pointer) const {
    if (query.type == AnswerType::boolean) {
      if (json.is_boolean()) return Value{json.get<bool>()};
      return error("profile-answer", pointer, query.selector + " answers true or false");
    }
    if (json.is_number_integer()) return Value{json.get<std::int64_t>()};
    const std::string text = json.is_string() ? json.get<std::string>() : std::string();
    std::int64_t number = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (code == std::errc{} && !text.empty() && end == text.data() + text.size()) {
      return Value{number};
    }
    return error("profile-answer", pointer, query.selector + " answers an integer of 64 bits");
  }

  Result<ProfileChange> read_change(const Json& row, const std::string& pointer) {
    auto key = read_key(row, pointer);
    if (!key) return tl::unexpected(std::move(key).error());
    const std::string name = to_string(*key);
    const Query* query = tables_.query(key->query);
    if (!query || !query->overridable) {
      return error("not-overridable", pointer, name + " cannot be changed by a profile",
                   "only yes/no and integer capability answers can");
    }
    if (!query->argument.empty() && key->arguments.empty()) {
      return error("profile-argument", pointer, name + " needs its argument");
    }
    if (!changed_.insert(*key).second) {
      return error("changed-twice", pointer, name + " is changed by an entry before this one");
    }
    auto value = read_answer(row["answer"], *query, pointer + "/answer");
    if (!value) return tl::unexpected(std::move(value).error());
    return ProfileChange{Answer{*std::move(key), *std::move(value)}, text_of(row, "reason"),
                         evidence_of(row), texts_of(row, "opens")};
  }

  const Tables& tables_;
  std::string_view name_;
  std::set<QueryKey> changed_;
};

Json value_json(const Value& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag;
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  const auto* number = std::get_if<std::int64_t>(&value);
  if (!number) return nullptr;
  if (*number > kExactInteger || *number < -kExactInteger) return std::to_string(*number);
  return *number;
}

Json key_json(const QueryKey& key) {
  Json json{{"query", key.query}};
  if (!key.arguments.empty()) json["arguments"] = key.arguments;
  return json;
}

}  // namespace

Result<Profile> read_profile(const Tables& tables, std::string_view text, std::string_view name) {
  auto json = read_document(text, "profile", name);
  if (!json) return tl::unexpected(std::move(json).error());
  return ProfileReader(tables, name).read(*json);
}

Json to_json(const Profile& profile) {
  Json json{{"schema", "metaldoctor.profile/1"}};
  json["bound"] = {{"chip", profile.bound.chip},
                   {"os", profile.bound.os},
                   {"table_edition", profile.bound.table_edition}};
  json["changes"] = Json::array();
  for (const ProfileChange& change : profile.changes) {
    Json row = key_json(change.answer.key);
    row["answer"] = value_json(change.answer.value);
    row["reason"] = change.reason;
    row["evidence"] = to_string(change.evidence);
    row["opens"] = change.opens;
    json["changes"].push_back(std::move(row));
  }
  json["left_alone"] = Json::array();
  for (const LeftAlone& left : profile.left_alone) {
    Json row = key_json(left.key);
    row["why"] = left.why;
    row["detail"] = left.detail;
    row["evidence"] = to_string(left.evidence);
    json["left_alone"].push_back(std::move(row));
  }
  json["callers"] = kCallers[static_cast<std::size_t>(profile.callers)];
  json["scope"] = kScopes[static_cast<std::size_t>(profile.scope)];
  json["accepted_hazards"] = profile.accepted_hazards;
  return json;
}

}  // namespace metaldoctor
