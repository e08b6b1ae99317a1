#include "scanners/code/findings_diff.h"

#include <map>
#include <utility>

namespace metaldoctor {

std::vector<FindingsChange> compare_findings(const Findings& first, const Findings& second) {
  using Kind = FindingsChange::Kind;
  struct Counts {
    std::size_t first = 0, second = 0;
  };
  std::map<std::pair<Kind, std::string>, Counts> rows;
  const auto count = [&rows](const Findings& findings, std::size_t Counts::* side) {
    for (const QuerySite& site : findings.sites) {
      const bool argued = site.arguments.kind != SiteArguments::Kind::none;
      const std::string arguments = argued ? to_string(site.arguments) : std::string();
      ++(rows[{Kind::question, site.query + arguments}].*side);
    }
    for (const Gate& gate : findings.gates) ++(rows[{Kind::gate, gate.expr}].*side);
  };
  count(first, &Counts::first);
  count(second, &Counts::second);
  std::vector<FindingsChange> changes;
  for (const auto& [key, counts] : rows) {
    if (counts.first == counts.second) continue;
    changes.push_back({key.first, key.second, counts.first, counts.second});
  }
  return changes;
}

}  // namespace metaldoctor
