#include "scanners/code/findings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

namespace metaldoctor {
namespace {

constexpr std::array<std::string_view, 8> kRoutes = {
    "stub", "selref", "registered_selector", "symbol", "function", "looked_up", "wrapper", "thunk"};

bool is_call(Route route) {
  return route == Route::function || route == Route::looked_up;
}

std::string dump_site(const QuerySite& site) {
  std::string arguments = to_string(site.arguments);
  if (!site.text.empty()) arguments = fmt::format("'{}'", site.text);
  return fmt::format("{} {}{}{} @{:#x} {}{} in {}\n", is_call(site.route) ? "call" : "send",
                     site.selector, arguments.empty() ? "" : " ", arguments, site.address,
                     to_string(site.route), site.tail_call ? " tail" : "", site.function);
}

std::string read_by(const std::vector<std::uint64_t>& readers) {
  std::string out;
  for (const std::uint64_t reader : readers)
    out += fmt::format("{}{:#x}", out.empty() ? " read @" : ",", reader);
  return out;
}

std::string dump_ladder(const Ladder& ladder) {
  std::string out = fmt::format("ladder {} {}..{} ({}) @{:#x} in {}", ladder.query, ladder.first,
                                ladder.last, ladder.sites.size(), ladder.address, ladder.function);
  for (const std::string& use : ladder.uses) out += " -> " + use;
  return out + read_by(ladder.readers) + "\n";
}

std::string where(const Gate& gate) {
  switch (gate.where.kind) {
    case Gate::Where::Kind::branch:
      return fmt::format("branch @{:#x}", gate.where.address);
    case Gate::Where::Kind::select:
      return fmt::format("select @{:#x}", gate.where.address);
    case Gate::Where::Kind::field:
      return fmt::format("field [{}]+{:#x}", gate.where.base, gate.where.offset);
    case Gate::Where::Kind::global:
      return fmt::format("global {:#x}", gate.where.address);
    case Gate::Where::Kind::returned:
      return "returned";
  }
  return {};
}

}  // namespace

Findings::Totals Findings::totals() const {
  Totals totals;
  for (const QuerySite& site : sites) {
    if (!site.counts) continue;
    ++totals.found;
    ++(site.arguments.is_resolved() ? totals.resolved : totals.unresolved);
  }
  return totals;
}

std::string_view to_string(Route route) {
  return kRoutes[static_cast<std::size_t>(route)];
}

std::string to_string(const SiteArguments& arguments) {
  switch (arguments.kind) {
    case SiteArguments::Kind::none:
      return {};
    case SiteArguments::Kind::value:
      return fmt::format("{}", fmt::join(arguments.values, ", "));
    case SiteArguments::Kind::set:
      return fmt::format("{{{}}}", fmt::join(arguments.values, ", "));
    case SiteArguments::Kind::base_plus_parameter:
      return fmt::format("{} + parameter {}", arguments.base, arguments.parameter);
    case SiteArguments::Kind::unresolved:
      return fmt::format("? ({})", arguments.reason);
  }
  return {};
}

std::string dump(const Findings& findings) {
  std::string out;
  for (const QuerySite& site : findings.sites) out += dump_site(site);
  for (const Ladder& ladder : findings.ladders) out += dump_ladder(ladder);
  for (const Gate& gate : findings.gates)
    out +=
        fmt::format("gate {} {} = {}{}{}{}{}\n", gate.id, where(gate), gate.expr,
                    gate.certainty == Certainty::likely ? " (likely)" : "", read_by(gate.readers),
                    gate.feeds.empty() ? "" : " feeds ", fmt::join(gate.feeds, ","));
  for (const HiddenQuery& hidden : findings.hidden)
    out += fmt::format("hidden {}: {}\n", hidden.selector, hidden.reason);
  for (const auto& [query, count] : findings.counted)
    out += fmt::format("counted {} {}\n", query, count);
  for (const auto& [query, count] : findings.unproven)
    out += fmt::format("unproven {} {}\n", query, count);
  const auto totals = findings.totals();
  return out + fmt::format("totals found {} resolved {} unresolved {}\n", totals.found,
                           totals.resolved, totals.unresolved);
}

}  // namespace metaldoctor
