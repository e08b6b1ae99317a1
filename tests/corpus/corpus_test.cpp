// End-to-end: what the audit finds in real programs, against lists that were read from their
// disassembly (expected/*.txt). The files are fetched by fetch.py and never committed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>

#include "scanners/code/app_match.h"
#include "tables/predicate.h"
#include "tests/unit/code/limits.h"
#include "tests/unit/code/support.h"

namespace metaldoctor {
namespace {

std::filesystem::path cache() {
  if (const char* set = std::getenv("METALDOCTOR_CORPUS")) return set;
  if (const char* set = std::getenv("XDG_CACHE_HOME"))
    return std::filesystem::path(set) / "metaldoctor-corpus";
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home ? home : "/") / ".cache/metaldoctor-corpus";
}

/// The list of one slice: the sites of one architecture of a file.
struct Expected {
  struct Site {
    std::uint64_t address = 0;
    std::string query, argument;
  };
  std::vector<Site> sites;
  std::map<std::string, std::size_t> counted;
  Findings::Totals totals;
};

std::map<std::string, Expected> expected(const std::string& id) {
  std::map<std::string, Expected> out;
  std::ifstream in(std::filesystem::path(METALDOCTOR_CORPUS_LISTS) / (id + ".txt"));
  EXPECT_TRUE(in) << id;
  Expected* list = nullptr;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string kind, first, query, argument;
    words >> kind >> first;
    if (kind == "arch") list = &out[first];
    if (!list || kind == "#") continue;
    if (kind == "count") {
      words >> list->counted[first];
    } else if (kind == "totals") {
      list->totals.found = std::strtoull(first.c_str(), nullptr, 10);
      words >> list->totals.resolved >> list->totals.unresolved;
    } else if (kind == "site" || kind == "also") {
      words >> query >> std::ws;
      std::getline(words, argument);
      list->sites.push_back({std::strtoull(first.c_str(), nullptr, 16), query, argument});
    }
  }
  return out;
}

/// The audited slices of a corpus file; empty if it was not fetched.
std::vector<Findings> corpus(const std::string& id) {
  const auto path = cache() / id;
  if (!std::filesystem::exists(path)) return {};
  return testing::audit_file(testing::read_file(path), id);
}

#define CORPUS_OR_SKIP(name, id) \
  const auto name = corpus(id);  \
  if (name.empty())              \
  GTEST_SKIP() << "SKIPPED: " << id << " is not in the corpus cache; run tests/corpus/fetch.py"

class Corpus : public ::testing::TestWithParam<const char*> {};

std::string argument_text(const QuerySite& site) {
  return site.text.empty() ? to_string(site.arguments) : fmt::format("'{}'", site.text);
}

/// Every site of the list with its argument, no family besides, and the sums.
TEST_P(Corpus, FindsTheListAndNoOtherFamily) {
  CORPUS_OR_SKIP(all, GetParam());
  for (const auto& [arch, list] : expected(GetParam())) {
    std::multimap<std::uint64_t, const QuerySite*> found;
    std::map<std::string, std::size_t> counted;
    Findings::Totals totals;
    for (const Findings& findings : all) {
      if (findings.image.arch != arch) continue;
      for (const QuerySite& site : findings.sites) found.emplace(site.address, &site);
      for (const auto& [query, count] : findings.counted) counted[query] += count;
      totals.found += findings.totals().found;
      totals.resolved += findings.totals().resolved;
      totals.unresolved += findings.totals().unresolved;
    }
    std::set<std::uint64_t> listed;
    for (const Expected::Site& want : list.sites) {
      listed.insert(want.address);
      const auto [begin, end] = found.equal_range(want.address);
      const auto site = std::find_if(
          begin, end, [&](const auto& entry) { return entry.second->selector == want.query; });
      EXPECT_NE(site, end) << arch << ": " << want.query << fmt::format(" at {:#x}", want.address);
      if (site != end)
        EXPECT_EQ(argument_text(*site->second), want.argument)
            << arch << fmt::format(": {:#x}", want.address);
    }
    for (const auto& [address, site] : found)
      if (site->query == "supportsFamily:" && site->text.empty())
        EXPECT_TRUE(listed.count(address)) << arch << fmt::format(": {:#x}", address);
    for (const auto& [query, count] : list.counted) EXPECT_EQ(counted[query], count) << query;
    EXPECT_EQ(totals.found, list.totals.found) << arch;
    EXPECT_EQ(totals.resolved, list.totals.resolved) << arch;
    EXPECT_EQ(totals.unresolved, list.totals.unresolved) << arch;
  }
}

TEST_P(Corpus, EveryExpressionParses) {
  CORPUS_OR_SKIP(all, GetParam());
  for (const Findings& findings : all)
    for (const Gate& gate : findings.gates) {
      const auto parsed = Predicate::parse(gate.expr, gate.id);
      EXPECT_TRUE(parsed) << gate.id << ": " << gate.expr;
    }
}

INSTANTIATE_TEST_SUITE_P(
    Audit, Corpus,
    ::testing::Values("ggml-3.21.1", "ggml-3.1.1", "whisper-addon", "whisper-napi", "dawn",
                      "rnllama", "rnllama-simulator", "rtc-node", "deno", "deno-x64", "filament",
                      "mlx", "ggml-2.8.16-x64"),
    [](const auto& info) {
      std::string name = info.param;
      std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
      return name;
    });

/// "family(1007) or family(5001)" of the field at `offset` in ggml's device.
const Gate* field(const Findings& findings, std::int64_t offset) {
  for (const Gate& gate : findings.gates)
    if (gate.where.kind == Gate::Where::Kind::field && gate.where.offset == offset &&
        gate.function == "_ggml_metal_device_init")
      return &gate;
  return nullptr;
}

/// Hardened, and yet open to injection: its entitlements say so.
TEST(CorpusDeno, SigningFacts) {
  for (const char* id : {"deno", "deno-x64"}) {
    CORPUS_OR_SKIP(all, id);
    const Findings::Signing& signing = all[0].signing;
    EXPECT_TRUE(signing.hardened) << id;
    EXPECT_TRUE(signing.has_cms);
    EXPECT_FALSE(signing.library_validation);
    EXPECT_EQ(signing.team_id, "2H4KBF436B");
    for (const char* key : {"com.apple.security.cs.allow-dyld-environment-variables",
                            "com.apple.security.cs.disable-library-validation"})
      EXPECT_NE(signing.entitlements.find(key), std::string::npos) << key;
  }
}

TEST(CorpusGgml, LaddersAreOneFindingEach) {
  CORPUS_OR_SKIP(all, "ggml-3.21.1");
  const Findings& found = all[0];
  ASSERT_EQ(found.ladders.size(), 3u);
  EXPECT_EQ(found.ladders[0].first, 1021);
  EXPECT_EQ(found.ladders[0].last, 1001);
  EXPECT_EQ(found.ladders[0].sites.size(), 21u);
  EXPECT_EQ(found.ladders[1].sites.size(), 6u);
  EXPECT_EQ(found.ladders[2].sites.size(), 6u);
  // Only the Apple ladder is kept, as its number less 1000; the flash-attention tuner reads it.
  EXPECT_EQ(found.ladders[0].uses,
            std::vector<std::string>{"field [result of call 0x67e0]+0x154 (value - 1000)"});
  EXPECT_EQ(found.ladders[0].readers, std::vector<std::uint64_t>{0x1c638});
  EXPECT_TRUE(found.ladders[1].uses.empty());
  // The ladders' steps are no gates.
  for (const Gate& gate : found.gates)
    if (gate.where.kind == Gate::Where::Kind::branch)
      EXPECT_FALSE(gate.where.address > 0x6f5c && gate.where.address < 0x72a0) << gate.id;
}

TEST(CorpusGgml, FlagsOfTheDevice) {
  CORPUS_OR_SKIP(all, "ggml-3.21.1");
  const Findings& found = all[0];
  struct Case {
    std::int64_t offset;
    std::string expr;
    std::vector<std::uint64_t> readers;
  };
  const Case cases[] = {
      {0x148, "family(1007) or family(5001)", {0x7700}},
      {0x149, "family(1007)", {0x76fc, 0x1789c, 0x199ec, 0x1a0c8}},
      {0x14a, "unified()", {}},
      {0x14e,
       "not env('GGML_METAL_SHARED_BUFFERS_DISABLE') and (unified() or answer('location') == 2) or "
       "env('GGML_METAL_SHARED_BUFFERS_ENABLE')",
       {0x35f8}},
      {0x14f, "family(1007)", {}},
  };
  for (const Case& one : cases) {
    const Gate* gate = field(found, one.offset);
    ASSERT_NE(gate, nullptr) << one.offset;
    EXPECT_EQ(gate->expr, one.expr);
    EXPECT_EQ(gate->certainty, Certainty::certain) << one.offset;
    EXPECT_EQ(gate->readers, one.readers) << one.offset;
  }
}

/// The value of a gate when the listed atoms are true and all others are false.
Truth value(const Gate& gate, const std::set<std::string>& yes, Truth unknowns) {
  auto expr = Predicate::parse(gate.expr);
  EXPECT_TRUE(expr) << gate.expr;
  if (!expr) return Truth::unknown;
  // unknown('...') stands for driver facts: decide it for the test.
  std::string text = gate.expr;
  for (auto at = text.find("unknown("); at != std::string::npos; at = text.find("unknown(")) {
    const auto end = text.find("')", at) + 2;
    text.replace(at, end - at, unknowns == Truth::yes ? "true" : "false");
  }
  return Predicate::parse(text)->evaluate([&](const Atom& atom) -> metaldoctor::Value {
    if (atom.kind == AtomKind::answer && atom.key.query == "name") return std::string("Apple M1");
    return yes.count(to_string(atom)) != 0;
  });
}

TEST(CorpusGgml, FlagsWithVetoesAndLaterTests) {
  CORPUS_OR_SKIP(all, "ggml-3.21.1");
  const Gate* bfloat = field(all[0], 0x14b);
  const Gate* tensor = field(all[0], 0x14c);
  ASSERT_NE(bfloat, nullptr);
  ASSERT_NE(tensor, nullptr);
  const auto atom = [](const char* text) {
    return to_string(*Predicate::parse(text)->atoms().begin());
  };
  const std::string apple6 = atom("family(1006)"), metal3 = atom("family(5001)"),
                    metal4 = atom("family(5002)"), veto = atom("env('GGML_METAL_BF16_DISABLE')"),
                    enable = atom("env('GGML_METAL_TENSOR_ENABLE')"),
                    disable = atom("env('GGML_METAL_TENSOR_DISABLE')");
  for (const std::string& either : {apple6, metal3}) {
    EXPECT_EQ(value(*bfloat, {either}, Truth::yes), Truth::yes);
    EXPECT_EQ(value(*bfloat, {either, veto}, Truth::yes), Truth::no);
  }
  EXPECT_EQ(value(*bfloat, {}, Truth::yes), Truth::no);
  // has_tensor: set by Metal4, then cleared by the environment, the name and two test kernels.
  EXPECT_EQ(value(*tensor, {metal4, enable}, Truth::yes), Truth::yes);
  EXPECT_EQ(value(*tensor, {metal4, enable}, Truth::no), Truth::no);
  EXPECT_EQ(value(*tensor, {metal4}, Truth::yes), Truth::no);
  EXPECT_EQ(value(*tensor, {metal4, enable, disable}, Truth::yes), Truth::no);
  EXPECT_EQ(value(*tensor, {enable}, Truth::yes), Truth::no);
  EXPECT_NE(tensor->expr.find("'M5'"), std::string::npos);
  EXPECT_EQ(tensor->certainty, Certainty::likely);
}

TEST(CorpusGgml, OneArgumentComesFromTheCaller) {
  CORPUS_OR_SKIP(all, "ggml-3.21.1");
  const auto& sites = all[0].sites;
  const auto site = std::find_if(sites.begin(), sites.end(),
                                 [](const QuerySite& s) { return s.address == 0x135f4; });
  ASSERT_NE(site, sites.end());
  EXPECT_EQ(to_string(site->arguments), "1000 + parameter 1");
  EXPECT_TRUE(site->tail_call);
}

TEST(CorpusGgml, IsRecognisedByItsMarkers) {
  const auto path = cache() / "ggml-3.21.1";
  if (!std::filesystem::exists(path))
    GTEST_SKIP() << "SKIPPED: ggml-3.21.1 is not in the corpus cache";
  const auto tables = Tables::embedded();
  ASSERT_TRUE(tables) << tables.error().what;
  const auto bytes = testing::read_file(path);
  const auto file = MachOFile::read(bytes, "libggml-metal.so");
  const auto matches = match_apps(*tables, file->slices().at(0), "libggml-metal.so");
  ASSERT_TRUE(matches);
  ASSERT_EQ(matches->size(), 1u);
  EXPECT_EQ(matches->at(0).app, "ggml-metal");
  EXPECT_EQ(matches->at(0).ranges, std::vector<std::string>{"G8"});

  const Vocabulary words = vocabulary(*tables);
  const auto findings = audit(file->slices().at(0), words, "libggml-metal.so");
  ASSERT_TRUE(findings);
  const App* app = tables->app("ggml-metal");
  for (const AppRange& range : app->ranges) {
    if (range.id != "G8") continue;
    for (const RuleCheck& check : check_rules(*app, range, *findings))
      EXPECT_NE(check.outcome, RuleCheck::Outcome::contradicted)
          << check.rule << ": " << check.detail;
  }
}

/// Cheap damage to real files: the first pages and the linkedit of each, a few hundred times.
TEST(CorpusMutations, GiveFindingsOrADiagnostic) {
  const Vocabulary words = testing::small_vocabulary();
  Auditor auditor(words);
  std::uint64_t seed = 88172645463325252ull;
  const auto next = [&] { return seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17; };
  std::size_t runs = 0;
  for (const char* id : {"ggml-3.21.1", "whisper-addon", "filament"}) {
    const auto path = cache() / id;
    if (!std::filesystem::exists(path)) continue;
    const auto original = testing::read_file(path);
    for (int i = 0; i < 60; ++i, ++runs) {
      auto bytes = original;
      for (int k = 0; k < 8; ++k) {
        const std::size_t zone = next() % 3 == 0 ? bytes.size() : next() % 2 ? 0x2000 : 0x10000;
        const std::size_t at =
            next() % 2 ? next() % std::min(zone, bytes.size())
                       : bytes.size() - 1 - next() % std::min<std::size_t>(zone, bytes.size());
        bytes[at] = static_cast<std::uint8_t>(next());
      }
      const testing::CostLimit limit(fmt::format("{}, mutation {}", id, i), bytes.size());
      if (const auto file = MachOFile::read(bytes, "mutant"))
        for (const Slice& slice : file->slices()) (void)auditor.audit(slice, "mutant");
    }
  }
  if (runs == 0) GTEST_SKIP() << "SKIPPED: the corpus cache is empty; run tests/corpus/fetch.py";
}

}  // namespace
}  // namespace metaldoctor
