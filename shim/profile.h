#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tables/answer.h"
#include "tables/document.h"
#include "tables/evidence.h"
#include "tables/tables.h"

namespace metaldoctor {

struct ProfileChange {
  Answer answer;
  std::string reason;
  Evidence evidence = Evidence::unknown;
  std::vector<std::string> opens;  ///< path ids "ggml-metal@G8/has_simdgroup_mm"
};

struct LeftAlone {
  QueryKey key;
  /// "same-as-host", "not-asked", "hazard:ID", "above-host", "not-needed", "set"
  std::string why;
  std::string detail;
  Evidence evidence = Evidence::unknown;
};

/// The answers to change for one process, and why no more. Document kind "profile".
struct Profile {
  struct Bound {
    std::string chip;  ///< empty: a lowering profile, which needs no bound
    std::string os;    ///< what the bound was computed for; empty = assumed newest
    std::string table_edition;
  } bound;
  std::vector<ProfileChange> changes;
  std::vector<LeftAlone> left_alone;
  enum class Callers { all, app } callers = Callers::all;
  enum class Scope { process, tree } scope = Scope::process;
  std::vector<std::string> accepted_hazards;
};

/// Reads a profile document. Queries are canonical afterwards; a change of an answer that cannot
/// be overridden, or two changes of one answer, are refused.
Result<Profile> read_profile(const Tables& tables, std::string_view text, std::string_view name);
Json to_json(const Profile& profile);

}  // namespace metaldoctor
