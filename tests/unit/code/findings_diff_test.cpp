#include "scanners/code/findings_diff.h"

#include <gtest/gtest.h>

namespace metaldoctor {
namespace {

QuerySite site(std::string query, std::vector<std::int64_t> values) {
  QuerySite row;
  row.query = std::move(query);
  row.arguments.values = std::move(values);
  if (!row.arguments.values.empty()) row.arguments.kind = SiteArguments::Kind::value;
  return row;
}
Gate gate(std::string expr) {
  Gate row;
  row.expr = std::move(expr);
  return row;
}

TEST(FindingsDiff, CountsWhatOneHasMoreOf) {
  Findings before, after;
  before.sites = {site("supportsFamily:", {1007}), site("hasUnifiedMemory", {}),
                  site("supportsFamily:", {1007})};
  after.sites = {site("hasUnifiedMemory", {}), site("supportsFamily:", {1007}),
                 site("supportsFamily:", {5002})};
  before.gates = {gate("family(1007)")};
  after.gates = {gate("family(1007) or family(5001)")};
  std::string text;
  for (const FindingsChange& row : compare_findings(before, after)) {
    text += (row.kind == FindingsChange::Kind::gate ? "gate " : "asks ") + row.what + " " +
            std::to_string(row.first) + "->" + std::to_string(row.second) + "\n";
  }
  EXPECT_EQ(text,
            "asks supportsFamily:1007 2->1\n"
            "asks supportsFamily:5002 0->1\n"
            "gate family(1007) 1->0\n"
            "gate family(1007) or family(5001) 0->1\n");
}

TEST(FindingsDiff, AddressesDoNotMatter) {
  Findings before, after;
  before.sites = {site("hasUnifiedMemory", {})};
  after.sites = before.sites;
  after.sites[0].address = 0x4000;
  after.sites[0].function = "_moved";
  EXPECT_TRUE(compare_findings(before, after).empty());
}

}  // namespace
}  // namespace metaldoctor
