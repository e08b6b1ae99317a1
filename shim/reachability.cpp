#include "shim/reachability.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>

namespace metaldoctor {

namespace {

bool is_boolean(const Situation& situation, const Atom& atom) {
  const Query* query =
      atom.kind == AtomKind::answer ? situation.tables().query(atom.key.query) : nullptr;
  return query && query->type == AnswerType::boolean;
}

World with_values(const World& base, const std::map<Atom, Value>& values) {
  return [&base, &values](const Atom& atom) {
    const auto found = values.find(atom);
    return found == values.end() ? base(atom) : found->second;
  };
}

/// Calls `visit` with every assignment of the boolean atoms until it returns true.
template <typename Visit>
bool any_assignment(const std::vector<Atom>& booleans, std::map<Atom, Value> values, Visit visit) {
  if (booleans.size() > kMaxVariedAnswers) {
    for (const Atom& atom : booleans) values[atom] = {};
    return visit(values);
  }
  for (std::uint32_t mask = 0; mask < std::uint32_t{1} << booleans.size(); ++mask) {
    for (std::size_t i = 0; i < booleans.size(); ++i) values[booleans[i]] = (mask >> i & 1) != 0;
    if (visit(values)) return true;
  }
  return false;
}

/// Whether no assignment of the overridable answers opens the path when `released` are unknown.
bool stays_closed(const Situation& situation, const Predicate& predicate,
                  const std::set<Atom>& released) {
  std::vector<Atom> booleans;
  std::map<Atom, Value> values;
  for (const Atom& atom : predicate.atoms()) {
    if (released.contains(atom)) {
      values[atom] = {};
    } else if (situation.overridable(atom)) {
      if (is_boolean(situation, atom))
        booleans.push_back(atom);
      else
        values[atom] = {};
    }
  }
  const World guest = situation.guest();
  return !any_assignment(booleans, values, [&](const std::map<Atom, Value>& assignment) {
    return predicate.evaluate(with_values(guest, assignment)) != Truth::no;
  });
}

}  // namespace

std::optional<std::vector<Atom>> closing_facts(const Situation& situation,
                                               const Predicate& predicate) {
  std::set<Atom> released;
  if (!stays_closed(situation, predicate, released)) return std::nullopt;
  std::vector<Atom> closing;
  const World guest = situation.guest();
  for (const Atom& atom : predicate.atoms()) {
    if (situation.overridable(atom) || !is_known(guest(atom))) continue;
    released.insert(atom);
    if (stays_closed(situation, predicate, released)) continue;
    released.erase(atom);
    closing.push_back(atom);
  }
  return closing;
}

std::optional<std::vector<Atom>> denied_openers(const Situation& situation,
                                                const Predicate& predicate) {
  const World host = situation.host_world();
  std::vector<Atom> denied;
  for (const Atom& atom : predicate.atoms()) {
    if (situation.overridable(atom) && host(atom) == Value{false}) denied.push_back(atom);
  }
  if (denied.size() > kMaxVariedAnswers) denied.resize(kMaxVariedAnswers);
  std::optional<std::vector<Atom>> smallest;
  for (std::uint32_t mask = 1; mask < std::uint32_t{1} << denied.size(); ++mask) {
    if (smallest && static_cast<std::size_t>(std::popcount(mask)) >= smallest->size()) continue;
    std::map<Atom, Value> values;
    for (std::size_t i = 0; i < denied.size(); ++i) {
      if (mask >> i & 1) values[denied[i]] = true;
    }
    if (predicate.evaluate(with_values(host, values)) != Truth::yes) continue;
    smallest.emplace();
    for (const auto& [atom, value] : values) smallest->push_back(atom);
  }
  return smallest;
}

std::vector<Atom> deciding_unknowns(const Predicate& predicate, const World& world) {
  const std::array<Value, 6> probes{false, true, std::int64_t{0}, std::int64_t{1} << 40, "", "?"};
  std::vector<Atom> unknown, deciding;
  for (const Atom& atom : predicate.atoms()) {
    if (is_known(world(atom))) continue;
    unknown.push_back(atom);
    const bool settles = std::any_of(probes.begin(), probes.end(), [&](const Value& probe) {
      return predicate.evaluate(with_values(world, {{atom, probe}})) != Truth::unknown;
    });
    if (settles) deciding.push_back(atom);
  }
  return deciding.empty() ? unknown : deciding;
}

}  // namespace metaldoctor
