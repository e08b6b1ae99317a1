#include "tables/host_answers.h"

#include <fmt/format.h>

#include <algorithm>

namespace metaldoctor {
namespace {

using Reach = OsKnowledge::Reach;

/// Whether a chip reports a family. Between yes and no lies what the tables do not say.
struct Membership {
  std::optional<bool> reported;
  Evidence evidence = Evidence::documented;
  std::string why;
  std::vector<std::string> sources;
};

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

const Family* family_of(const Tables& tables, const Chip& chip) {
  return chip.family ? tables.family(*chip.family) : nullptr;
}

/// `family` is `floor` or implies it.
bool reaches_family(const Family& family, std::string_view floor) {
  return family.short_name == floor || contains(family.implies, floor);
}

/// By the tables alone, whatever the OS. Families of another line that only some chips report
/// come from `reported_from`, and bring with them what they imply (Mac2 brings Mac1).
std::optional<bool> reports_by_chip(const Tables& tables, const Chip& chip, const Family& own,
                                    const Family& asked) {
  if (reaches_family(own, asked.short_name)) return true;
  for (const Family& other : tables.families()) {
    if (!other.reported_from || !reaches_family(own, *other.reported_from)) continue;
    if (other.mac_only && !chip.mac) continue;
    if (reaches_family(other, asked.short_name)) return true;
  }
  // An Apple family above the chip's own is a plain no; so is a family whose rule was not met.
  if (asked.line == own.line || asked.reported_from) return false;
  return std::nullopt;
}

/// What the OS does to a yes. On one and the same chip only the Metal families hang on it: an
/// Apple family came with the OS that the chip first ran, so no assumption is needed for it.
void apply_os(const Family& asked, const OsKnowledge& os, Membership& answer) {
  const Reach reach = os.reaches(asked.min_macos);
  const bool hangs_on_os = asked.line == "Metal";
  if (reach == Reach::no && (hangs_on_os || os.exact)) {
    answer.reported = false;
    answer.evidence = hangs_on_os && os.exact ? Evidence::documented : Evidence::inferred;
    answer.why = fmt::format("{} needs macOS {}", asked.short_name, to_string(asked.min_macos));
  } else if (reach == Reach::assumed_yes && hangs_on_os) {
    answer.evidence = weaker(answer.evidence, Evidence::inferred);
    answer.why += fmt::format(", macOS {} assumed", to_string(os.assumed));
  } else if (hangs_on_os) {
    answer.why += fmt::format(", macOS {} or later", to_string(asked.min_macos));
  }
}

Membership membership(const Tables& tables, const Chip& chip, const OsKnowledge& os,
                      const Family& asked) {
  Membership answer;
  const Family* own = family_of(tables, chip);
  if (own == nullptr) return answer;
  answer.reported = reports_by_chip(tables, chip, *own, asked);
  answer.why = fmt::format("{} ({})", own->short_name, chip.name);
  answer.sources = chip.provenance.sources;
  for (const std::string& source : asked.provenance.sources) {
    if (!contains(answer.sources, source)) answer.sources.push_back(source);
  }
  if (contains(chip.inferred_families, asked.short_name)) answer.evidence = Evidence::inferred;
  if (answer.reported == true) apply_os(asked, os, answer);
  return answer;
}

/// Whether the chip meets any of a row's floors. Lines are alternatives, so one that does not say
/// ("varies", not confirmed) leaves the whole open unless another line is a yes.
Membership meets_floors(const Tables& tables, const Chip& chip, const OsKnowledge& os,
                        std::initializer_list<const std::optional<std::string>*> floors) {
  Membership best;
  bool open = false;
  for (const std::optional<std::string>* floor : floors) {
    if (!*floor) continue;
    const Family* family = tables.family(**floor);
    Membership one = family != nullptr ? membership(tables, chip, os, *family) : Membership{};
    if (!one.reported) {
      open = true;
    } else if (!best.reported || (*one.reported && !*best.reported) ||
               (*one.reported == *best.reported && one.evidence < best.evidence)) {
      best = std::move(one);
    }
  }
  if (open && best.reported != true) best.reported = std::nullopt;
  return best;
}

std::optional<HostAnswer> answer_from(const Membership& membership, Value value, QueryKey key,
                                      const Provenance& provenance, std::string why) {
  HostAnswer answer{{std::move(key), std::move(value)}, Evidence::documented, std::move(why), {}};
  answer.evidence = weaker(membership.evidence, provenance.evidence);
  answer.sources = provenance.sources;
  for (const std::string& source : membership.sources) {
    if (!contains(answer.sources, source)) answer.sources.push_back(source);
  }
  return answer;
}

std::optional<HostAnswer> family_answer(const Tables& tables, const Chip& chip,
                                        const OsKnowledge& os, const QueryKey& key) {
  const Family* asked = tables.family(key.arguments.front());
  if (asked == nullptr) return std::nullopt;
  const Membership answer = membership(tables, chip, os, *asked);
  if (!answer.reported) return std::nullopt;
  return HostAnswer{{key, *answer.reported}, answer.evidence, answer.why, answer.sources};
}

std::optional<HostAnswer> feature_set_answer(const Tables& tables, const Chip& chip,
                                             const OsKnowledge& os, const QueryKey& key) {
  const FeatureSet* set = tables.feature_set(key.arguments.front());
  if (set == nullptr || !set->family || !set->mac || !chip.mac) return std::nullopt;
  const Family* family = tables.family(*set->family);
  if (family == nullptr) return std::nullopt;
  const Membership answer = membership(tables, chip, os, *family);
  if (!answer.reported) return std::nullopt;
  return answer_from(answer, *answer.reported, key, set->provenance,
                     fmt::format("{}, through {}", answer.why, family->short_name));
}

std::optional<HostAnswer> known_answer(const Tables& tables, const Chip& chip,
                                       const OsKnowledge& os, const Query& query,
                                       const QueryKey& key) {
  for (const KnownAnswer& row : query.known) {
    if (row.argument && (key.arguments.empty() || key.arguments.front() != *row.argument)) continue;
    const bool any_device = !row.apple && !row.mac;
    if (any_device) {
      if (!chip.mac || !chip.family) return std::nullopt;
      const Membership everywhere{true, Evidence::measured, {}, {}};
      return answer_from(everywhere, row.answer, key, row.provenance, "every Apple silicon Mac");
    }
    const Membership floor = meets_floors(tables, chip, os, {&row.apple, &row.mac});
    if (!floor.reported) return std::nullopt;
    if (*floor.reported) return answer_from(floor, row.answer, key, row.provenance, floor.why);
  }
  return std::nullopt;
}

std::optional<HostAnswer> limit_answer(const Tables& tables, const Chip& chip, const Query& query,
                                       const QueryKey& key) {
  const Limit* limit = tables.limit(query.limit);
  if (limit == nullptr || !chip.family) return std::nullopt;
  const auto value = limit->values.find(*chip.family);
  if (value == limit->values.end() || !std::holds_alternative<std::int64_t>(value->second)) {
    return std::nullopt;
  }
  const Membership own{true, Evidence::measured, {}, chip.provenance.sources};
  return answer_from(own, value->second, key, limit->provenance,
                     fmt::format("limit {}, {} ({})", limit->id, *chip.family, chip.name));
}

std::optional<HostAnswer> feature_answer(const Tables& tables, const Chip& chip,
                                         const OsKnowledge& os, const Query& query,
                                         const QueryKey& key) {
  const Feature* feature = tables.feature(query.feature);
  if (feature == nullptr || !chip.family) return std::nullopt;
  const Membership floor =
      meets_floors(tables, chip, os, {&feature->apple, &feature->mac, &feature->metal});
  if (!floor.reported) return std::nullopt;
  return answer_from(floor, *floor.reported, key, feature->provenance,
                     fmt::format("feature {}, {}", feature->id, floor.why));
}

}  // namespace

std::optional<HostAnswer> host_answer(const Tables& tables, const Chip& chip, const OsKnowledge& os,
                                      const QueryKey& key) {
  const auto canonical = tables.canonical(key);
  if (!canonical) return std::nullopt;
  const Query& query = *tables.query(canonical->query);
  if (os.exact && *os.exact < query.min_macos) return std::nullopt;
  if (query.selector == "supportsFamily:") return family_answer(tables, chip, os, *canonical);
  if (query.selector == "supportsFeatureSet:") {
    return feature_set_answer(tables, chip, os, *canonical);
  }
  if (!query.known.empty()) return known_answer(tables, chip, os, query, *canonical);
  if (!query.argument.empty()) return std::nullopt;
  if (query.type == AnswerType::integer) return limit_answer(tables, chip, query, *canonical);
  if (query.type == AnswerType::boolean) {
    return feature_answer(tables, chip, os, query, *canonical);
  }
  return std::nullopt;
}

std::vector<HostAnswer> host_answers(const Tables& tables, const Chip& chip,
                                     const OsKnowledge& os) {
  std::vector<HostAnswer> answers;
  const auto add = [&](const QueryKey& key) {
    if (auto answer = host_answer(tables, chip, os, key)) answers.push_back(std::move(*answer));
  };
  for (const Query& query : tables.queries()) {
    if (query.argument.empty()) {
      add({query.selector, {}});
      continue;
    }
    for (const std::int64_t argument : query.known_arguments) add({query.selector, {argument}});
  }
  return answers;
}

std::optional<HostAnswer> any_host_answer(const Tables& tables, const QueryKey& key) {
  const OsKnowledge os{std::nullopt, std::nullopt, tables.newest_macos()};
  std::optional<HostAnswer> common;
  std::vector<std::string> silent;
  for (const Chip& chip : tables.chips()) {
    if (!chip.mac) continue;
    auto answer = host_answer(tables, chip, os, key);
    if (!answer) {
      silent.push_back(chip.name);
      continue;
    }
    if (common && common->answer.value != answer->answer.value) return std::nullopt;
    if (!common) {
      common = std::move(answer);
      continue;
    }
    common->evidence = weaker(common->evidence, answer->evidence);
  }
  if (!common) return std::nullopt;
  common->why = "the same on every Mac chip of the tables";
  if (!silent.empty()) {
    common->evidence = weaker(common->evidence, Evidence::inferred);
    common->why += fmt::format(" but {}, where it was not read", fmt::join(silent, ", "));
  }
  return common;
}

std::vector<std::string> chip_families(const Tables& tables, const Chip& chip,
                                       const OsKnowledge& os) {
  std::vector<std::string> names;
  for (const Family& family : tables.families()) {
    if (membership(tables, chip, os, family).reported == true) names.push_back(family.short_name);
  }
  return names;
}

}  // namespace metaldoctor
