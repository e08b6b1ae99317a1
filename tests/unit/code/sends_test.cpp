// The forms of tests/fixtures/macho/sends.m and wrappers.c, on every processor and in every kind of
// file: what the dump says of each function, without addresses.
#include <fmt/format.h>

#include <map>
#include <regex>
#include <sstream>

#include "tests/unit/code/support.h"

namespace metaldoctor {
namespace {

using Lines = std::map<std::string, std::vector<std::string>>;

/// The sites and ladders of the dump by function, without addresses.
Lines sites(const Findings& findings) {
  static const std::regex kLine("^(send|call|ladder) (.*) @0x[0-9a-f]+ ?(.*) in (\\S+)$");
  Lines out;
  std::istringstream in(dump(findings));
  for (std::string line; std::getline(in, line);) {
    std::smatch match;
    if (!std::regex_match(line, match, kLine)) continue;
    const std::string rest = match[3].str().empty() ? "" : " " + match[3].str();
    out[match[4]].push_back(match[2].str() + rest);
  }
  return out;
}

std::vector<std::string> gates(const Findings& findings, const std::string& function) {
  std::vector<std::string> out;
  for (const Gate& gate : findings.gates)
    if (gate.function == function && gate.where.kind != Gate::Where::Kind::returned)
      out.push_back(gate.expr);
  return out;
}

Findings fixture(const std::string& name) {
  const auto bytes = testing::read_file(std::filesystem::path(METALDOCTOR_MACHO_FIXTURES) / name);
  if (bytes.empty()) return {};
  return testing::audit_file(bytes, name).at(0);
}

#define FIXTURE_OR_SKIP(found, name)    \
  const Findings found = fixture(name); \
  if (found.image.arch.empty())         \
  GTEST_SKIP() << "SKIPPED: clang or ld64.lld was not there at build time"

class Sends : public ::testing::TestWithParam<const char*> {};

TEST_P(Sends, EveryForm) {
  FIXTURE_OR_SKIP(found, GetParam());
  const Lines expected = {
      {"_constant", {"supportsFamily: 1007 selref"}},
      {"_tail", {"supportsFamily: 1003 selref tail"}},
      {"_parameter", {"supportsFamily: 1000 + parameter 1 selref tail"}},
      {"_either_constant", {"supportsFamily: {1007, 1008} selref"}},
      {"_from_memory", {"supportsFamily: ? ([parameter 1 + 0x18]) selref"}},
      {"_zero", {"supportsTextureSampleCount: 0 selref"}},
      {"_shared", {"supportsFamily: 1007 selref", "supportsFamily: 2002 selref"}},
      {"_branch", {"supportsFamily: 1009 selref"}},
      {"_init",
       {"_MTLCreateSystemDefaultDevice function", "supportsFamily: 1007 selref",
        "supportsFamily: 5001 selref", "supportsFamily: 1006 selref", "supportsFamily: 5002 selref",
        "name selref", "containsString: 'M5' selref", "maxThreadgroupMemoryLength selref"}},
      {"_global", {"supportsFamily: 1005 selref"}},
      {"_ladder",
       {"supportsFamily: 1004 selref", "supportsFamily: 1003 selref", "supportsFamily: 1002 selref",
        "supportsFamily: 1001 selref", "supportsFamily: 1004..1001 (4)"}},
      {"_responds", {"respondsToSelector: 'supportsFamily:' selref"}},
      {"_major", {"operatingSystemVersion selref"}},
      {"_paravirtual",
       {"hasUnifiedMemory selref", "name selref", "_strcmp 'Apple Paravirtual device' function"}},
      {"_model", {"_sysctlbyname 'hw.model' function"}},
  };
  EXPECT_EQ(sites(found), expected) << dump(found);
  const auto totals = found.totals();
  EXPECT_EQ(totals.found, 18u);
  EXPECT_EQ(totals.found, totals.resolved + totals.unresolved);
  EXPECT_EQ(totals.unresolved, 1u);
}

TEST_P(Sends, EveryGate) {
  FIXTURE_OR_SKIP(found, GetParam());
  using List = std::vector<std::string>;
  EXPECT_EQ(gates(found, "_constant"), List{"family(1007)"});
  EXPECT_EQ(gates(found, "_shared"), List{"family(1007)"});
  EXPECT_EQ(gates(found, "_branch"), List{"family(1009)"});
  EXPECT_EQ(gates(found, "_global"), List{"family(1005)"});
  EXPECT_EQ(gates(found, "_init"),
            (List{"contains(answer('name'), 'M5')", "family(1007) or family(5001)",
                  "not env('FIXTURE_DISABLE') and family(1006)",
                  "contains(answer('name'), 'M5') and family(5002)", "tgmem()"}));
  const List paravirtual = gates(found, "_paravirtual");
  ASSERT_EQ(paravirtual.size(), 1u) << dump(found);
  EXPECT_NE(paravirtual[0].find("answer('name') == 'Apple Paravirtual device'"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Audit, Sends,
                         ::testing::Values("sends.dylib", "sends.o", "sends_arm64e.o",
                                           "sends_x86_64.dylib", "sends_x86_64_opcodes.dylib",
                                           "sends_x86_64.o"));

class Wrappers : public ::testing::TestWithParam<const char*> {};

/// A question counts where its constant is: at the callers of wrappers and thunks, unless nothing
/// of the image calls them.
TEST_P(Wrappers, AskForTheirCallers) {
  FIXTURE_OR_SKIP(found, GetParam());
  Lines lines = sites(found);
  const std::vector<std::string> devices = lines["_device_by_name"];
  lines.erase("_device_by_name");  // one call, or two copies of it
  const Lines expected = {
      {"_supports", {"supportsFamily: 0 + parameter 1 registered_selector tail"}},
      {"_direct", {"supportsFamily: 1007 wrapper"}},
      {"_two_levels", {"supportsFamily: 1009 thunk"}},
      {"_through_thunk", {"supportsFamily: 2002 thunk"}},
      {"_exported_thunk", {"supportsFamily: 5002 wrapper tail"}},
      {"_fetched", {"supportsRaytracing registered_selector"}},
  };
  EXPECT_EQ(lines, expected) << dump(found);
  ASSERT_FALSE(devices.empty());
  EXPECT_EQ(devices[0], "_MTLCreateSystemDefaultDevice looked_up tail");
  EXPECT_EQ(found.totals().found, 4u);
  EXPECT_EQ(found.totals().resolved, 4u);
  EXPECT_EQ(gates(found, "_direct"), std::vector<std::string>{"family(1007)"});
  EXPECT_EQ(gates(found, "_two_levels"), std::vector<std::string>{"family(1009)"});
  EXPECT_EQ(gates(found, "_fetched"), std::vector<std::string>{"raytracing()"});
  EXPECT_TRUE(found.hidden.empty());
}

INSTANTIATE_TEST_SUITE_P(Audit, Wrappers,
                         ::testing::Values("wrappers.dylib", "wrappers.o", "wrappers_x86_64.dylib",
                                           "wrappers_x86_64.o"));

TEST(Wrappers, NeedNoSymbols) {
  FIXTURE_OR_SKIP(found, "wrappers_stripped.dylib");
  EXPECT_EQ(found.totals().found, 4u) << dump(found);
  EXPECT_EQ(found.totals().resolved, 4u);
}

TEST(Outlined, LeavesAreExecutedInPlace) {
  FIXTURE_OR_SKIP(found, "outlined.dylib");
  const Lines expected = {
      {"_asks", {"supportsFamily: 1007 wrapper", "supportsFamily: 5001 wrapper"}},
      {"OUTLINED_send", {"supportsFamily: 0 + parameter 2 stub tail"}},
  };
  EXPECT_EQ(sites(found), expected) << dump(found);
  EXPECT_EQ(found.totals().found, 2u);
}

/// The elements of a table are the question's arguments where it is handed over; what the heap
/// holds depends on the parameter that shifts it.
TEST(Tables, ElementsAreASet) {
  FIXTURE_OR_SKIP(found, "tables.dylib");
  const Lines expected = {
      {"_any_of", {"supportsFamily: ? (elements of the table at parameter 1) stub"}},
      {"_first_three", {"supportsFamily: {1007, 1008, 1009} wrapper"}},
      {"_all_of_it", {"supportsFamily: {1006, 1007, 1008, 1009} wrapper"}},
      {"_through_thunk", {"supportsFamily: {1006, 1007} thunk"}},
      {"_heap", {"supportsFamily: {1007, 1009} stub", "supportsFamily: {1005, 1007} stub"}},
  };
  EXPECT_EQ(sites(found), expected) << dump(found);
  EXPECT_EQ(found.totals().found, 5u);
  EXPECT_EQ(found.totals().unresolved, 0u);
}

TEST(Registered, SelectorsOnX86) {
  FIXTURE_OR_SKIP(found, "registered_x86_64.dylib");
  const Lines expected = {
      {"_ask", {"supportsFamily: 1008 registered_selector"}},
      {"_limit", {"maxBufferLength registered_selector"}},
  };
  EXPECT_EQ(sites(found), expected) << dump(found);
}

}  // namespace
}  // namespace metaldoctor
