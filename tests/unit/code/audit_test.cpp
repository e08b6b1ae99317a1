#include "scanners/code/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>

#include "scanners/macho/function_starts.h"
#include "scanners/macho/objc.h"
#include "tables/document.h"
#include "tables/predicate.h"
#include "tests/unit/code/limits.h"
#include "tests/unit/code/support.h"

namespace metaldoctor {
namespace {

using testing::audit_file;
using testing::read_file;

/// Fixtures need clang and ld64.lld when the tests are built.
std::vector<std::uint8_t> fixture(const std::string& name) {
  return read_file(std::filesystem::path(METALDOCTOR_MACHO_FIXTURES) / name);
}

/// What each function of an image holds, without addresses: they differ between the links.
std::map<std::string, std::vector<std::string>> by_function(const Findings& findings) {
  std::map<std::string, std::vector<std::string>> out;
  for (const QuerySite& site : findings.sites)
    out[site.function].push_back(fmt::format(
        "{} {}{}", site.query, site.text.empty() ? to_string(site.arguments) : site.text,
        site.tail_call ? " tail" : ""));
  for (const Ladder& ladder : findings.ladders)
    out[ladder.function].push_back(fmt::format("ladder {}..{}", ladder.first, ladder.last));
  for (const Gate& gate : findings.gates) {
    constexpr const char* kKinds[] = {"branch", "select", "field", "global", "returned"};
    std::string line = kKinds[static_cast<std::size_t>(gate.where.kind)];
    if (gate.where.kind == Gate::Where::Kind::field)
      line += fmt::format("+{:#x}", gate.where.offset);
    out[gate.function].push_back(line + " = " + gate.expr +
                                 (gate.certainty == Certainty::likely ? " likely" : ""));
  }
  return out;
}

class LinkedThreeWays : public ::testing::TestWithParam<const char*> {};

TEST_P(LinkedThreeWays, EveryFormIsFound) {
  const auto bytes = fixture(GetParam());
  if (bytes.empty()) GTEST_SKIP() << "SKIPPED: clang or ld64.lld was not there at build time";
  const auto all = audit_file(bytes, GetParam());
  ASSERT_EQ(all.size(), 1u);
  const Findings& found = all[0];
  using Lines = std::vector<std::string>;
  const std::map<std::string, Lines> expected = {
      {"_constant", {"supportsFamily: 1007", "select = family(1007)"}},
      {"_movk", {"setLanguageVersion: 196610 tail"}},
      {"_tail", {"supportsFamily: 1003 tail", "returned = family(1003) likely"}},
      {"_parameter", {"supportsFamily: 1000 + parameter 1 tail"}},
      {"_either_constant", {"supportsFamily: {1007, 1008}"}},
      {"_from_memory", {"supportsFamily: ? ([parameter 1 + 0x18])"}},
      {"_shared",
       {"supportsFamily: 1007", "supportsFamily: 2002", "branch = family(1007)",
        "returned = family(1007) or family(2002) likely"}},
      {"_branch", {"supportsFamily: 1009", "branch = family(1009)"}},
      {"_global",
       {"supportsFamily: 1005", "global = family(1005)", "returned = family(1005) likely"}},
      {"_ladder",
       {"supportsFamily: 1004", "supportsFamily: 1003", "supportsFamily: 1002",
        "supportsFamily: 1001", "ladder 1004..1001"}},
      // What the flags of _init decide elsewhere.
      {"_reader",
       {"branch = family(1007) or family(5001) likely", "select = not family(1007) likely"}},
      {"_after_probe", {"supportsFamily: 1008", "select = family(1008)", "select = family(1008)"}},
      {"_init",
       {"_MTLCreateSystemDefaultDevice ", "supportsFamily: 1007", "supportsFamily: 5001",
        "supportsFamily: 1007", "hasUnifiedMemory ", "supportsFamily: 1006", "supportsFamily: 5002",
        "name ", "name M5", "maxThreadgroupMemoryLength ",
        "branch = contains(answer('name'), 'M5')", "field+0x20 = family(1007) or family(5001)",
        "field+0x21 = family(1007)", "field+0x22 = unified()",
        "field+0x23 = not env('FIXTURE_DISABLE') and family(1006)",
        "field+0x24 = contains(answer('name'), 'M5') and family(5002)", "field+0x28 = tgmem()"}},
  };
  EXPECT_EQ(by_function(found), expected) << dump(found);
  EXPECT_EQ(found.counted, (std::map<std::string, std::size_t>{{"threadExecutionWidth", 2}}));
  // `name` of something that nobody showed to be a device is no query, but it is not dropped.
  EXPECT_EQ(found.unproven, (std::map<std::string, std::size_t>{{"name", 1}}));
  const auto totals = found.totals();
  EXPECT_EQ(totals.found, totals.resolved + totals.unresolved);
  EXPECT_EQ(totals.unresolved, 1u);
}

TEST_P(LinkedThreeWays, FlagsAreReadElsewhere) {
  const auto bytes = fixture(GetParam());
  if (bytes.empty()) GTEST_SKIP() << "SKIPPED: clang or ld64.lld was not there at build time";
  const auto found = audit_file(bytes, GetParam()).at(0);
  for (const Gate& gate : found.gates) {
    if (gate.where.kind != Gate::Where::Kind::field) continue;
    const bool read = gate.where.offset == 0x20 || gate.where.offset == 0x21;
    EXPECT_EQ(gate.readers.size(), read ? 1u : 0u) << gate.where.offset;
    EXPECT_EQ(gate.feeds.empty(), !read) << gate.where.offset;
  }
}

TEST_P(LinkedThreeWays, SidesOfABranch) {
  const auto bytes = fixture(GetParam());
  if (bytes.empty()) GTEST_SKIP() << "SKIPPED: clang or ld64.lld was not there at build time";
  const auto found = audit_file(bytes, GetParam()).at(0);
  const auto gate = std::find_if(found.gates.begin(), found.gates.end(),
                                 [](const Gate& g) { return g.function == "_branch"; });
  ASSERT_NE(gate, found.gates.end());
  EXPECT_EQ(gate->if_true.calls, std::vector<std::string>{"_enabled"});
  EXPECT_EQ(gate->if_false.calls, std::vector<std::string>{"_disabled"});
  ASSERT_EQ(gate->if_true.ranges.size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Audit, LinkedThreeWays,
                         ::testing::Values("queries_fast.dylib", "queries_small.dylib",
                                           "queries_opcodes.dylib", "queries.o"));

TEST(Audit, SelrefsAndLoops) {
  const auto bytes = fixture("selrefs.dylib");
  if (bytes.empty()) GTEST_SKIP() << "SKIPPED: clang or ld64.lld was not there at build time";
  const auto found = audit_file(bytes, "selrefs.dylib").at(0);
  const std::map<std::string, std::vector<std::string>> expected = {
      {"_one", {"supportsFamily: 1007", "select = family(1007)"}},
      {"_loop", {"supportsFamily: 2002"}},
      {"_two",
       {"supportsFamily: 5001", "supportsFamily: 1006", "branch = family(5001)",
        "select = family(1006)"}},
      {"_sum", {"maxBufferLength ", "select = answer('maxBufferLength') > 4096"}},
  };
  EXPECT_EQ(by_function(found), expected) << dump(found);
  for (const QuerySite& site : found.sites) EXPECT_EQ(site.route, Route::selref);
}

TEST(Audit, RegisteredSelectors) {
  for (const char* name : {"registered.dylib", "registered_stripped.dylib"}) {
    const auto bytes = fixture(name);
    if (bytes.empty()) GTEST_SKIP() << "SKIPPED: clang or ld64.lld was not there at build time";
    const auto found = audit_file(bytes, name).at(0);
    ASSERT_EQ(found.sites.size(), 2u) << dump(found);
    EXPECT_EQ(found.sites[0].route, Route::registered_selector);
    EXPECT_EQ(to_string(found.sites[0].arguments), "1008");
    EXPECT_EQ(found.sites[1].query, "maxBufferLength");
    // Registering supportsRaytracing is no question, and that nobody is seen to ask it is told.
    ASSERT_EQ(found.hidden.size(), 1u);
    EXPECT_EQ(found.hidden[0].selector, "supportsRaytracing");
  }
}

TEST(Audit, JsonFollowsItsSchema) {
  const auto bytes = fixture("queries_fast.dylib");
  if (bytes.empty()) GTEST_SKIP() << "SKIPPED: clang or ld64.lld was not there at build time";
  const Json json = to_json(audit_file(bytes, "queries_fast.dylib").at(0));
  const auto valid = validate_document(json, "findings", "findings");
  EXPECT_TRUE(valid) << (valid ? "" : valid.error().where + ": " + valid.error().what);
  EXPECT_EQ(json["totals"]["found"], 19);
  for (const Json& gate : json["gates"]) {
    const auto expr = Predicate::parse(gate["expr"].get<std::string>());
    EXPECT_TRUE(expr) << gate["expr"];
  }
}

TEST(Audit, ExpectedSignatureFacts) {
  const auto bytes = fixture("queries_fast.dylib");
  if (bytes.empty()) GTEST_SKIP() << "SKIPPED: clang or ld64.lld was not there at build time";
  const auto found = audit_file(bytes, "queries_fast.dylib").at(0);
  EXPECT_TRUE(found.signing.adhoc);
  EXPECT_FALSE(found.signing.hardened);
  EXPECT_EQ(found.image.build, "macOS 13.0, SDK 13.0");
  EXPECT_EQ(found.image.install_name, "@rpath/queries_fast.dylib");
}

/// A scheduler may load w2 far from the call, in another block, or through the stack.
TEST(Audit, ArgumentsOnTheWay) {
  const auto host = fixture("queries_fast.dylib");
  if (host.empty()) GTEST_SKIP() << "SKIPPED: clang or ld64.lld was not there at build time";
  const auto file = MachOFile::read(host, "host");
  const auto image = Image::read(file->slices().at(0));
  const auto fixups = Fixups::read(*image);
  std::uint64_t stub = 0;
  for (const ObjcStub& entry : objc_stubs(*image, *fixups).stubs)
    if (entry.selector == "supportsFamily:") stub = entry.address;
  ASSERT_NE(stub, 0u);
  // The words replace the longest function of the fixture.
  const auto starts = read_function_starts(*image);
  std::uint64_t text = 0, longest = 0;
  for (const std::uint64_t start : starts->addresses) {
    const auto [begin, end] = starts->around(*image, start);
    if (image->section_at(begin)->name == "__text" && end - begin > longest)
      text = begin, longest = end - begin;
  }
  const Section* section = image->section("__TEXT", "__text");
  const auto call = [&](std::size_t index) {
    return 0x94000000u | (static_cast<std::uint32_t>(stub - (text + index * 4)) / 4 & 0x3ffffff);
  };
  struct Case {
    const char* what;
    std::vector<std::uint32_t> words;  // 0 = the call
    const char* expected;
  };
  const Case cases[] = {
      {"spilled and reloaded", {0x52807de8, 0xf90007e8, 0xf94007e2, 0}, "1007"},
      {"copied", {0x52807de9, 0xaa0903e2, 0}, "1007"},
      {"two paths, two numbers",
       {0x34000060, 0x52807de2, 0x14000002, 0x52807e02, 0},
       "{1007, 1008}"},
      {"two paths, one number", {0x34000060, 0x52807de2, 0x14000002, 0x52807de2, 0}, "1007"},
      {"a loop counter", {0x52807d22, 0x11000442, 0x710fb85f, 0x54ffffc1, 0}, "?"},
      {"sum of numbers", {0x52807d08, 0x91001d02, 0}, "1007"},
      {"overwritten by a call", {0x52807de2, 0, 0}, "?"},
      {"negative", {0x92800002, 0}, "-1"},
      {"selected by a test of the caller", {0x7100003f, 0x52807de8, 0x1a881502, 0}, "{1007, 1008}"},
  };
  for (const Case& one : cases) {
    auto words = one.words;
    for (std::size_t i = 0; i < words.size(); ++i)
      if (words[i] == 0) words[i] = call(i);
    words.push_back(0xd65f03c0);
    auto bytes = host;
    ASSERT_LE(words.size() * 4, longest);
    for (std::size_t i = 0; i < words.size(); ++i)
      std::memcpy(bytes.data() + section->file_offset + (text - section->address) + i * 4,
                  &words[i], 4);
    const auto found = audit_file(bytes, "patched").at(0);
    const std::uint64_t at = text + (words.size() - 2) * 4;
    const auto site = std::find_if(found.sites.begin(), found.sites.end(),
                                   [&](const QuerySite& s) { return s.address == at; });
    ASSERT_NE(site, found.sites.end()) << one.what;
    const std::string argument = to_string(site->arguments);
    if (*one.expected == '?')
      EXPECT_EQ(argument[0], '?') << one.what << ": " << argument;
    else
      EXPECT_EQ(argument, one.expected) << one.what;
  }
}

/// Damage of every kind gives findings or a diagnostic: no signal, no hang. Seeded, so that a
/// failure can be repeated. METALDOCTOR_MUTATIONS asks for more.
TEST(Audit, SurvivesMutations) {
  const Vocabulary words = testing::small_vocabulary();
  const char* wanted = std::getenv("METALDOCTOR_MUTATIONS");
  const int rounds = wanted ? std::atoi(wanted) : 20'000;
  std::vector<std::vector<std::uint8_t>> originals;
  for (const char* name :
       {"queries_fast.dylib", "queries_small.dylib", "queries_opcodes.dylib", "selrefs.dylib",
        "registered.dylib", "queries.o", "wrappers.dylib", "outlined.dylib", "sends_x86_64.dylib",
        "wrappers_x86_64.dylib", "sends_x86_64.o"})
    if (auto bytes = fixture(name); !bytes.empty()) originals.push_back(std::move(bytes));
  if (originals.empty()) GTEST_SKIP() << "SKIPPED: clang or ld64.lld was not there at build time";
  Auditor auditor(words);
  std::mt19937 random(20260801);
  std::size_t largest = 0;
  for (const auto& original : originals) largest = std::max(largest, original.size());
  std::size_t refused = 0, read = 0;
  for (int round = 0; round < rounds; ++round) {
    auto bytes = originals[random() % originals.size()];
    const unsigned edits = 1 + random() % 4;
    for (unsigned i = 0; i < edits; ++i) {
      // Headers, __text and __LINKEDIT are where a byte decides something.
      const std::size_t zones[] = {random() % 0x600, 0x580 + random() % 0x500,
                                   bytes.size() - 1 - random() % 0x1200, random() % bytes.size()};
      std::size_t at = zones[random() % 4] % bytes.size();
      const std::uint8_t values[] = {0,
                                     0xff,
                                     0x7f,
                                     0x80,
                                     static_cast<std::uint8_t>(random()),
                                     static_cast<std::uint8_t>(bytes[at] ^ (1u << random() % 8))};
      bytes[at] = values[random() % 6];
    }
    if (random() % 16 == 0) bytes.resize(random() % bytes.size());
    const testing::CostLimit limit(fmt::format("round {}", round), largest);
    const auto file = MachOFile::read(bytes, "mutant");
    if (!file) {
      ++refused;
      continue;
    }
    for (const Slice& slice : file->slices()) {
      const auto found = auditor.audit(slice, "mutant");
      ++(found ? read : refused);
      if (!found) EXPECT_FALSE(found.error().where.empty());
      if (found) EXPECT_FALSE(to_json(*found).dump().empty());
    }
  }
  RecordProperty("refused", static_cast<int>(refused));
  RecordProperty("read", static_cast<int>(read));
  EXPECT_GT(refused, 0u);
  EXPECT_GT(read, 0u);
}

}  // namespace
}  // namespace metaldoctor
