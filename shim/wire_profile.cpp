#include "shim/wire_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace metaldoctor {
namespace {

const shim::Query* overridable(std::string_view selector) {
  for (const shim::Query& query : shim::kQueries) {
    if (selector == query.selector) return &query;
  }
  return nullptr;
}

/// The number that the library answers with; none = it cannot.
std::optional<std::uint64_t> answer_number(const shim::Query& query, const Value& value) {
  if (const bool* truth = std::get_if<bool>(&value); truth && query.is_boolean) return *truth;
  if (const auto* number = std::get_if<std::int64_t>(&value); number && !query.is_boolean) {
    if (*number >= 0) return static_cast<std::uint64_t>(*number);
  }
  return std::nullopt;
}

Result<void> check_change(const Answer& change) {
  const std::string where = "profile: " + to_string(change.key);
  const shim::Query* query = overridable(change.key.query);
  if (!query) {
    return fail(Fault::input, "profile-not-overridable", where,
                "the injected library cannot change this answer");
  }
  if (change.key.arguments.size() != (query->has_argument ? 1 : 0)) {
    return fail(Fault::input, "profile-argument", where,
                query->has_argument ? "the query needs one argument" : "it takes no argument");
  }
  if (query->has_argument && std::abs(change.key.arguments[0]) > shim::kMaxArgument) {
    return fail(Fault::input, "profile-argument", where, "an argument lies within -2^53..2^53");
  }
  if (!answer_number(*query, change.value)) {
    return fail(Fault::input, "profile-answer", where,
                fmt::format("the answer is {}, expected {}", to_string(change.value),
                            query->is_boolean ? "yes or no" : "a number that is not negative"));
  }
  return {};
}

std::uint64_t wire_of(const Answer& change) {
  return overridable(change.key.query)->wire;
}

}  // namespace

Result<InjectedProfile> injected_profile(const Tables& tables, const Profile& profile,
                                         shim::Bound bound) {
  InjectedProfile out;
  out.callers = profile.callers;
  out.scope = profile.scope;
  out.bound = bound;
  for (const ProfileChange& row : profile.changes) {
    auto key = tables.canonical(row.answer.key);
    if (!key) return tl::unexpected(key.error());
    const Answer change{*key, row.answer.value};
    if (auto ok = check_change(change); !ok) return tl::unexpected(ok.error());
    out.changes.push_back(change);
  }
  if (out.changes.size() > shim::kMaxChanges) {
    return fail(Fault::input, "profile-size", "profile",
                fmt::format("{} changes, the injected library has room for {}", out.changes.size(),
                            shim::kMaxChanges));
  }
  std::ranges::sort(out.changes, [](const Answer& a, const Answer& b) {
    return std::pair(wire_of(a), a.key) < std::pair(wire_of(b), b.key);
  });
  const auto twice = std::ranges::adjacent_find(out.changes, {}, &Answer::key);
  if (twice != out.changes.end()) {
    return fail(Fault::input, "profile-duplicate", "profile: " + to_string(twice->key),
                "the answer is changed twice");
  }
  if (encode(out).size() > shim::kSectionSize) {
    return fail(Fault::input, "profile-size", "profile",
                fmt::format("its text form is longer than {} bytes", shim::kSectionSize));
  }
  return out;
}

std::string encode(const InjectedProfile& profile) {
  std::string text = fmt::format("{}{};{};{};", shim::kProfileMark,
                                 shim::kCallersNames[static_cast<int>(profile.callers)],
                                 shim::kScopeNames[static_cast<int>(profile.scope)],
                                 shim::kBoundNames[static_cast<int>(profile.bound)]);
  for (const Answer& change : profile.changes) {
    const shim::Query& query = *overridable(change.key.query);
    text += std::to_string(query.wire);
    if (query.has_argument) text += fmt::format(":{}", change.key.arguments[0]);
    text += fmt::format("={};", answer_number(query, change.value).value_or(0));
  }
  return text + ".";
}

Result<InjectedProfile> decode_profile(std::string_view text, std::string_view where) {
  shim::Overrides read;
  if (!shim::parse_overrides(text.data(), text.size(), read)) {
    return fail(Fault::input, "profile-text", std::string(where),
                "the text is no profile: the library would change nothing");
  }
  InjectedProfile out;
  out.callers = static_cast<Profile::Callers>(read.callers);
  out.scope = static_cast<Profile::Scope>(read.scope);
  out.bound = read.bound;
  for (std::size_t i = 0; i < read.count; ++i) {
    const shim::Change& change = read.changes[i];
    const shim::Query& query = *shim::find_query(change.wire);
    Answer answer{{query.selector, {}}, {}};
    if (query.has_argument) answer.key.arguments.push_back(change.argument);
    if (query.is_boolean) {
      answer.value = change.value != 0;
    } else if (change.value <= static_cast<std::uint64_t>(INT64_MAX)) {
      answer.value = static_cast<std::int64_t>(change.value);
    }
    out.changes.push_back(std::move(answer));
  }
  return out;
}

}  // namespace metaldoctor
