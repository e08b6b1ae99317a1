#include "shim/branches.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "shim/world.h"
#include "tables/host_answers.h"

namespace metaldoctor {
namespace {

/// The Mac chip of the lowest family: every Apple silicon host has at least what it has.
const Chip* least_mac_chip(const Tables& tables) {
  const Chip* least = nullptr;
  std::int64_t lowest = 0;
  for (const Chip& chip : tables.chips()) {
    const Family* family = chip.family ? tables.family(*chip.family) : nullptr;
    if (family == nullptr || !chip.mac) continue;
    if (least != nullptr && family->value >= lowest) continue;
    least = &chip;
    lowest = family->value;
  }
  return least;
}

Branch branch_of(const Path& path, const World& first, const World& second) {
  Branch branch{path, path.predicate.evaluate(first), path.predicate.evaluate(second), false, false,
                {}};
  branch.differs = branch.first != Truth::unknown && branch.second != Truth::unknown &&
                   branch.first != branch.second;
  branch.is_worse = branch.differs && path.side == Rule::Side::gain;
  if (!branch.differs) return branch;
  for (const Atom& atom : path.predicate.atoms()) {
    const Value before = first(atom), after = second(atom);
    if (before == after) continue;
    branch.because.push_back(
        fmt::format("{}: {}, {}", to_string(atom), to_string(before), to_string(after)));
  }
  return branch;
}

std::set<Atom> atoms_of(const std::vector<Path>& paths) {
  std::set<Atom> atoms;
  for (const Path& path : paths) atoms.merge(path.predicate.atoms());
  return atoms;
}

BranchComparison compare(std::string first_name, const World& first, std::string second_name,
                         const World& second, const std::vector<Path>& paths) {
  BranchComparison result{std::move(first_name), std::move(second_name), {}, {}, true};
  for (const Path& path : paths) result.branches.push_back(branch_of(path, first, second));
  return result;
}

}  // namespace

AssumedDevice device_of_chip(const Tables& tables, const Chip& chip, const OsKnowledge& os) {
  AssumedDevice device{chip.name, {}};
  device.capture.name = "Apple " + chip.name;
  device.capture.system.is_virtual = false;
  if (os.exact) device.capture.system.os = to_string(*os.exact);
  for (const HostAnswer& row : host_answers(tables, chip, os)) {
    device.capture.answers.push_back(
        {row.answer, row.evidence, {CaptureSource::Kind::assumed, {}, {}, row.why}});
  }
  return device;
}

std::size_t BranchComparison::count_worse() const {
  return static_cast<std::size_t>(std::ranges::count_if(branches, &Branch::is_worse));
}

bool BranchComparison::has_findings() const {
  return std::ranges::any_of(branches, [&](const Branch& branch) {
    return branch.is_worse ||
           (!is_ranked && branch.differs && branch.path.side != Rule::Side::neutral);
  });
}

Result<BranchComparison> compare_with_host(const Tables& tables, const AssumedDevice& guest,
                                           const std::vector<Path>& paths,
                                           const RecommendOptions& options) {
  RecommendOptions used = options;
  std::string note;
  if (host_chip(tables, guest.capture, options.diagnose).chip == nullptr) {
    used.diagnose.host = least_mac_chip(tables);
    if (used.diagnose.host != nullptr) {
      note = fmt::format("the host is not known: {} is taken, which no Apple silicon Mac is below",
                         used.diagnose.host->name);
    }
  }
  const Situation situation(tables, guest.capture, used);
  if (situation.obstacle()) return tl::unexpected(*situation.obstacle());
  auto result =
      compare(guest.name, situation.guest(), situation.host()->name, situation.host_world(), paths);
  result.notes = situation.assumptions(atoms_of(paths));
  if (!note.empty()) result.notes.insert(result.notes.begin(), std::move(note));
  return result;
}

BranchComparison compare_devices(const Tables& tables, const AssumedDevice& first,
                                 const AssumedDevice& second, const std::vector<Path>& paths,
                                 const RecommendOptions& options) {
  const Situation one(tables, first.capture, options), two(tables, second.capture, options);
  auto result = compare(first.name, one.guest(), second.name, two.guest(), paths);
  result.is_ranked = false;
  for (Branch& branch : result.branches) branch.is_worse = false;
  std::set<std::string> notes;
  for (const Situation* situation : {&one, &two}) {
    for (std::string& line : situation->assumptions(atoms_of(paths))) {
      if (notes.insert(line).second) result.notes.push_back(std::move(line));
    }
  }
  return result;
}

}  // namespace metaldoctor
