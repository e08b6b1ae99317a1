#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scanners/code/findings.h"
#include "scanners/macho/image.h"
#include "tables/tables.h"

namespace metaldoctor {

/// A program of the tables that an image was recognised as.
struct AppMatch {
  std::string app;
  /// Range ids, oldest first: what every matching marker allows. Empty if markers contradict each
  /// other (a fork, or a release that nobody read); all ranges if no marker bounds them.
  std::vector<std::string> ranges;
  std::vector<std::string> markers;  ///< the matches that were found, as "kind match"
};

/// An app matches by a marker that bounds no range (it names the program), or by two that do.
/// `path` is the file's name, for markers of kind path.
std::vector<AppMatch> match_apps(std::span<const App> apps, const Image& image,
                                 std::string_view path);
/// The same for a slice whose image was not kept.
Result<std::vector<AppMatch>> match_apps(const Tables& tables, const Slice& slice,
                                         std::string_view path);

/// A rule of a matched range, held against what was found in the binary.
struct RuleCheck {
  std::string app, range, rule;
  enum class Outcome {
    confirmed,     ///< a gate of the binary has the same truth table over the same answers
    consistent,    ///< every answer the rule names is asked; no gate is comparable
    contradicted,  ///< an answer is not asked, or the gate over the same answers differs
    open,          ///< an answer is not found, but the binary has unresolved sites of that query
  } outcome = Outcome::consistent;
  std::string gate;    ///< id of the gate, if one decided
  std::string detail;  ///< one sentence
};
std::vector<RuleCheck> check_rules(const App& app, const AppRange& range, const Findings& findings);
std::string_view to_string(RuleCheck::Outcome outcome);

}  // namespace metaldoctor
