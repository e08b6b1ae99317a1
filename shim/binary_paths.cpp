#include "shim/binary_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace metaldoctor {
namespace {

using Outcome = RuleCheck::Outcome;

/// Calls that only tell somebody something.
constexpr std::array<std::string_view, 12> logging = {
    "_NSLog",   "_os_log", "_printf",       "_fprintf", "_puts",   "_fputs",
    "_vprintf", "_syslog", "__os_log_impl", "_fflush",  "_perror", "_fwrite"};

bool only_logs(const std::string& call) {
  return std::ranges::any_of(logging, [&](std::string_view name) { return call == name; }) ||
         call.find("log_internal") != std::string::npos;
}

bool does_something(const GateSide& side) {
  return !side.selectors.empty() ||
         std::ranges::any_of(side.calls, [](const std::string& call) { return !only_logs(call); });
}

bool is_stored(const Gate& gate) {
  using Kind = Gate::Where::Kind;
  return gate.where.kind == Kind::field || gate.where.kind == Kind::global;
}

std::string file_name(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

/// "calls a, b; sends c; strings 'd'", cut to what a line can hold.
std::string describe(const GateSide& side) {
  constexpr std::size_t shown = 6;
  std::vector<std::string> parts;
  const auto add = [&](std::string_view label, const std::vector<std::string>& items) {
    if (items.empty()) return;
    const auto end = items.begin() + static_cast<std::ptrdiff_t>(std::min(shown, items.size()));
    parts.push_back(fmt::format("{} {}{}", label, fmt::join(items.begin(), end, ", "),
                                items.size() > shown ? ", ..." : ""));
  };
  add("calls", side.calls);
  add("sends", side.selectors);
  add("strings", side.strings);
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string place(const Gate& gate) {
  if (gate.where.kind == Gate::Where::Kind::field) {
    return fmt::format("flag at [{}]+{:#x}, {} reader(s)", gate.where.base, gate.where.offset,
                       gate.readers.size());
  }
  if (gate.where.kind == Gate::Where::Kind::global) {
    return fmt::format("flag at {:#x}, {} reader(s)", gate.where.address, gate.readers.size());
  }
  return fmt::format("branch at {:#x} in {}", gate.where.address, gate.function);
}

Path path_of(const Findings& findings, const Gate& gate, const Predicate& predicate,
             const GateSide& side, std::string_view suffix) {
  Path path;
  path.program = file_name(findings.image.path);
  path.id = fmt::format("{}/{}{}", path.program, gate.id, suffix);
  path.predicate = predicate;
  path.side = gate.certainty == Certainty::certain ? Rule::Side::gain : Rule::Side::neutral;
  path.opens = fmt::format("{}{}{}", place(gate), does_something(side) ? ": " : "", describe(side));
  path.sends = side.selectors;
  path.gates = {gate.id};
  path.evidence = gate.certainty == Certainty::certain ? Evidence::read : Evidence::inferred;
  path.sources = {fmt::format("{} ({}), gate {}", path.program, findings.image.arch, gate.id)};
  return path;
}

bool holds(const std::vector<std::string>& list, const std::string& item) {
  return std::ranges::find(list, item) != list.end();
}

/// A flag opens what the gates of its readers open when it is set.
GateSide opened_by(const Findings& findings, const Gate& gate) {
  GateSide side = gate.if_true;
  for (const Gate& fed : findings.gates) {
    if (fed.expr != gate.expr || !holds(gate.feeds, fed.id)) continue;
    const auto add = [](std::vector<std::string>& to, const std::vector<std::string>& from) {
      for (const std::string& item : from)
        if (!holds(to, item)) to.push_back(item);
    };
    add(side.calls, fed.if_true.calls);
    add(side.selectors, fed.if_true.selectors);
    add(side.strings, fed.if_true.strings);
  }
  return side;
}

/// Gates that only hand a flag on: they are part of the flag's path.
std::set<std::string> part_of_a_flag(const Findings& findings) {
  std::set<std::string> parts;
  for (const Gate& gate : findings.gates) {
    if (gate.feeds.empty()) continue;
    for (const Gate& fed : findings.gates)
      if (fed.expr == gate.expr && holds(gate.feeds, fed.id)) parts.insert(fed.id);
  }
  return parts;
}

void add_gate_paths(const Findings& findings, const Gate& gate, std::vector<Path>& paths) {
  const auto predicate = Predicate::parse(gate.expr, gate.id);
  if (!predicate) return;
  const bool asks_device = std::ranges::any_of(
      predicate->atoms(), [](const Atom& atom) { return atom.kind == AtomKind::answer; });
  if (!asks_device) return;
  const bool read_elsewhere = is_stored(gate) && !gate.readers.empty();
  if (read_elsewhere || does_something(gate.if_true)) {
    paths.push_back(path_of(findings, gate, *predicate, opened_by(findings, gate), ""));
  }
  if (is_stored(gate) || !does_something(gate.if_false)) return;
  if (const auto opposite = Predicate::parse(fmt::format("not ({})", gate.expr), gate.id)) {
    paths.push_back(path_of(findings, gate, *opposite, gate.if_false, "/else"));
  }
}

const AppRange* newest_allowed(const App& app, const std::vector<std::string>& ranges) {
  const AppRange* newest = nullptr;
  for (const AppRange& range : app.ranges) {
    if (std::ranges::find(ranges, range.id) != ranges.end()) newest = &range;
  }
  return newest;
}

/// Gates whose expression is that of `id`: the flag, and the branches that test it.
std::vector<const Gate*> gates_like(const Findings& findings, const std::string& id) {
  std::vector<const Gate*> gates;
  const auto named = std::ranges::find(findings.gates, id, &Gate::id);
  for (const Gate& gate : findings.gates) {
    if (named != findings.gates.end() && gate.expr == named->expr) gates.push_back(&gate);
  }
  return gates;
}

/// The paths of a recognised program's rules that the binary does not contradict. `named` gets the
/// gates that a rule already describes.
void add_rule_paths(const Findings& findings, const RecognisedProgram& program,
                    std::set<std::string>& named, std::vector<Path>& paths) {
  std::vector<Path> of_rules = paths_of(*program.app, *program.range);
  for (std::size_t i = 0; i < of_rules.size() && i < program.rules.size(); ++i) {
    const RuleCheck& check = program.rules[i];
    if (check.outcome == Outcome::contradicted) continue;
    for (const Gate* gate : gates_like(findings, check.gate)) {
      named.insert(gate->id);
      of_rules[i].gates.push_back(gate->id);
      of_rules[i].sources.push_back(fmt::format("{} ({}), gate {}", file_name(findings.image.path),
                                                findings.image.arch, gate->id));
    }
    paths.push_back(std::move(of_rules[i]));
  }
}

}  // namespace

std::vector<RecognisedProgram> recognise(const Tables& tables, const std::vector<AppMatch>& matches,
                                         const Findings& findings) {
  std::vector<RecognisedProgram> programs;
  for (const AppMatch& match : matches) {
    RecognisedProgram program;
    program.match = match;
    program.app = tables.app(match.app);
    if (program.app != nullptr) program.range = newest_allowed(*program.app, match.ranges);
    if (program.range != nullptr) {
      program.rules = check_rules(*program.app, *program.range, findings);
    }
    programs.push_back(std::move(program));
  }
  return programs;
}

std::vector<Path> paths_of(const Findings& findings,
                           const std::vector<RecognisedProgram>& programs) {
  std::vector<Path> paths;
  std::set<std::string> named;
  for (const RecognisedProgram& program : programs) {
    if (program.range != nullptr) add_rule_paths(findings, program, named, paths);
  }
  const std::set<std::string> parts = part_of_a_flag(findings);
  for (const Gate& gate : findings.gates) {
    if (!parts.contains(gate.id) && !named.contains(gate.id)) add_gate_paths(findings, gate, paths);
  }
  return paths;
}

}  // namespace metaldoctor
