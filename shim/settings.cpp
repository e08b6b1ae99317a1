#include "shim/settings.h"
#include "tables/hazard_match.h"

#include <fmt/format.h>

#include <algorithm>

namespace metaldoctor {

namespace {

/// Objective-C's codes of the integers with a sign; NSUInteger and its like are 'Q', 'I', 'S', 'C'.
constexpr std::string_view kSignedCodes = "qlisc";

bool is_signed(const Query& query) {
  return !query.encoding_arm64.empty() &&
         kSignedCodes.find(query.encoding_arm64.front()) != std::string_view::npos;
}

/// The checked form of one setting: canonical key, a value of the query's kind.
Result<Answer> checked(const Situation& situation, const Answer& given) {
  auto key = situation.tables().canonical(given.key);
  if (!key) return tl::unexpected(std::move(key).error());
  const std::string name = to_string(*key);
  if (!situation.overridable(*key)) {
    return fail(Fault::usage, "not-overridable", name,
                "only yes/no and integer capability answers can be changed");
  }
  const Query* query = situation.tables().query(key->query);
  const bool fits = query->type == AnswerType::boolean
                        ? std::holds_alternative<bool>(given.value)
                        : std::holds_alternative<std::int64_t>(given.value);
  if (!fits) {
    return fail(Fault::usage, "answer-type", name,
                fmt::format("expected {}, found {}",
                            query->type == AnswerType::boolean ? "yes or no" : "an integer",
                            to_string(given.value)));
  }
  const auto* number = std::get_if<std::int64_t>(&given.value);
  if (number && *number < 0 && !is_signed(*query)) {
    return fail(Fault::usage, "answer-range", name,
                fmt::format("this answer is an unsigned integer, it cannot be {}", *number));
  }
  return Answer{*std::move(key), given.value};
}

std::optional<Diagnostic> above_host(const Situation& situation, const Answer& answer) {
  if (!is_raised(situation.guest_answer(answer.key), answer.value)) return std::nullopt;
  if (situation.obstacle()) return situation.obstacle();
  const std::string name = to_string(answer.key);
  const auto host = situation.host_answer(answer.key);
  if (!host) {
    return Diagnostic{
        Fault::refused, "above-host", name,
        fmt::format("the tables do not say what {} answers to {}", situation.host()->name, name),
        "leave it at the guest's answer"};
  }
  if (!is_raised(host->answer.value, answer.value)) return std::nullopt;
  return Diagnostic{Fault::refused, "above-host", name,
                    fmt::format("{} answers {} to {} ({}); {} would claim more than it has",
                                situation.host()->name, to_string(host->answer.value), name,
                                host->why, to_string(answer.value)),
                    "leave it out, or name the right host with --host-chip"};
}

std::vector<Diagnostic> hazard_refusals(const Situation& situation, const Answer& answer,
                                        const std::vector<Path>& paths,
                                        const std::set<std::string>& accepted) {
  std::vector<Diagnostic> refusals;
  for (const AppliedHazard& applied : hazards_of(situation, answer, paths, accepted)) {
    const Hazard& hazard = *applied.hazard;
    refusals.push_back(
        {Fault::refused, "hazard", to_string(answer.key),
         fmt::format("hazard {}{}: {}", hazard.id,
                     applied.program.empty() ? "" : fmt::format(" ({})", applied.program),
                     hazard.effect),
         fmt::format("to take the risk knowingly: --accept-hazard {}", hazard.id)});
  }
  return refusals;
}

/// Harm paths that the accepted settings open by themselves.
std::vector<Diagnostic> harm_refusals(const Situation& situation, const Settings& settings,
                                      const std::vector<Path>& paths,
                                      const std::set<std::string>& accepted) {
  const ProblemBuilder builder(situation, accepted, settings.forced, settings.pinned);
  std::vector<Diagnostic> refusals;
  for (const Path* path : builder.opened_harm(builder.forced_world(), paths)) {
    refusals.push_back({Fault::refused, "hazard", path->id,
                        fmt::format("the answers set would open a harmful path of {}: {}",
                                    path->program, path->opens),
                        fmt::format("to take the risk knowingly: --accept-hazard {}", path->id)});
  }
  return refusals;
}

}  // namespace

Result<Settings> check_settings(const Situation& situation, const std::vector<Answer>& set,
                                const std::vector<Path>& paths,
                                const std::set<std::string>& accepted) {
  Settings settings;
  std::set<QueryKey> seen;
  for (const Answer& given : set) {
    auto answer = checked(situation, given);
    if (!answer) return tl::unexpected(std::move(answer).error());
    if (!seen.insert(answer->key).second) {
      return fail(Fault::usage, "set-twice", to_string(answer->key), "this answer is set twice");
    }
    if (answer->value == situation.guest_answer(answer->key)) {
      settings.pinned.push_back(*std::move(answer));
      continue;
    }
    if (auto refusal = above_host(situation, *answer)) {
      settings.refusals.push_back(*std::move(refusal));
      continue;
    }
    auto hazards = hazard_refusals(situation, *answer, paths, accepted);
    if (hazards.empty()) settings.forced.push_back(*std::move(answer));
    std::move(hazards.begin(), hazards.end(), std::back_inserter(settings.refusals));
  }
  auto harm = harm_refusals(situation, settings, paths, accepted);
  if (!harm.empty()) settings.forced.clear();
  std::move(harm.begin(), harm.end(), std::back_inserter(settings.refusals));
  return settings;
}

}  // namespace metaldoctor
