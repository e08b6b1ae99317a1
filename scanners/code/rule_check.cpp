#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scanners/code/app_match.h"

namespace metaldoctor {
namespace {

constexpr std::size_t kMaxAtoms = 12;  // a truth table of 4096 rows

enum class Asked { yes, maybe, no };

/// Whether a binary asks one answer.
Asked asked(const Findings& findings, const QueryKey& key) {
  Asked best = Asked::no;
  for (const QuerySite& site : findings.sites) {
    if (site.query != key.query) continue;
    const auto& values = site.arguments.values;
    switch (site.arguments.kind) {
      case SiteArguments::Kind::none:
        return Asked::yes;
      case SiteArguments::Kind::value:
        if (key.arguments.empty() || values == key.arguments) return Asked::yes;
        break;
      case SiteArguments::Kind::set:
        if (key.arguments.size() == 1 &&
            std::find(values.begin(), values.end(), key.arguments[0]) != values.end())
          return Asked::yes;
        break;
      default:
        best = Asked::maybe;
    }
  }
  // What a wrapper hides cannot be told absent.
  for (const HiddenQuery& hidden : findings.hidden)
    if (hidden.selector == key.query) best = Asked::maybe;
  // Nor what was sent to an object that may be a device: "architecture" asks "architecture.name".
  for (const auto& [selector, count] : findings.unproven)
    if (key.query == selector || key.query.starts_with(selector + ".")) best = Asked::maybe;
  return best;
}

std::vector<Atom> answers_of(const Predicate& predicate) {
  std::vector<Atom> out;
  for (const Atom& atom : predicate.atoms())
    if (atom.kind == AtomKind::answer) out.push_back(atom);
  return out;
}

/// Same value for every assignment of truth values to the answers; what is no answer is unknown.
bool same_table(const Predicate& a, const Predicate& b, const std::vector<Atom>& atoms) {
  for (std::size_t row = 0; row < (std::size_t{1} << atoms.size()); ++row) {
    const World world = [&](const Atom& atom) -> Value {
      const auto found = std::find(atoms.begin(), atoms.end(), atom);
      if (found == atoms.end()) return {};
      return ((row >> (found - atoms.begin())) & 1) != 0;
    };
    if (a.evaluate(world) != b.evaluate(world)) return false;
  }
  return true;
}

void compare_gates(const Predicate& rule, const Findings& findings, RuleCheck& check) {
  const std::vector<Atom> atoms = answers_of(rule);
  if (atoms.empty() || atoms.size() > kMaxAtoms) return;
  const Gate* differing = nullptr;
  for (const Gate& gate : findings.gates) {
    const auto expr = Predicate::parse(gate.expr, gate.id);
    if (!expr || answers_of(*expr) != atoms) continue;
    if (same_table(rule, *expr, atoms)) {
      check.outcome = RuleCheck::Outcome::confirmed;
      check.gate = gate.id;
      check.detail = fmt::format("{} computes the same", gate.id);
      return;
    }
    // A branch tests one answer at a time; only a stored flag is a whole predicate.
    const bool whole =
        gate.where.kind == Gate::Where::Kind::field || gate.where.kind == Gate::Where::Kind::global;
    if (whole && gate.certainty == Certainty::certain && rule.atoms() == expr->atoms())
      differing = &gate;
  }
  if (!differing) return;
  check.outcome = RuleCheck::Outcome::contradicted;
  check.gate = differing->id;
  check.detail =
      fmt::format("the binary computes {}, the rule says {}", differing->expr, rule.print());
}

}  // namespace

std::vector<RuleCheck> check_rules(const App& app, const AppRange& range,
                                   const Findings& findings) {
  std::vector<RuleCheck> out;
  for (const Rule& rule : range.rules) {
    RuleCheck check{app.id, range.id, rule.id, RuleCheck::Outcome::consistent, {}, {}};
    compare_gates(rule.predicate, findings, check);
    for (const Atom& atom : answers_of(rule.predicate)) {
      const Asked how = asked(findings, atom.key);
      if (how == Asked::yes) continue;
      check.outcome =
          how == Asked::no ? RuleCheck::Outcome::contradicted : RuleCheck::Outcome::open;
      check.detail = to_string(atom.key) + (how == Asked::no
                                                ? " is not asked anywhere in the binary"
                                                : " is not found, but not every site is resolved");
      if (how == Asked::no) break;
    }
    if (check.detail.empty()) check.detail = "every answer of the rule is asked";
    out.push_back(std::move(check));
  }
  return out;
}

std::string_view to_string(RuleCheck::Outcome outcome) {
  constexpr std::array<std::string_view, 4> kNames = {"confirmed", "consistent", "contradicted",
                                                      "open"};
  return kNames[static_cast<std::size_t>(outcome)];
}

}  // namespace metaldoctor
