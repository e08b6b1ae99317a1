// llama.cpp's Metal backend of @node-llama-cpp/mac-arm64-metal 3.21.1, executed: what its device
// initialisation does with a guest's answers, and what changes when two of them change.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "tables/predicate.h"
#include "tests/unit/code/support.h"
#include "tests/unit/simulator/harness.h"

namespace metaldoctor::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::filesystem::path cache() {
  if (const char* set = std::getenv("METALDOCTOR_CORPUS")) return set;
  if (const char* set = std::getenv("XDG_CACHE_HOME"))
    return std::filesystem::path(set) / "metaldoctor-corpus";
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home ? home : "/") / ".cache/metaldoctor-corpus";
}

class Ggml : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto metal = cache() / "ggml-3.21.1", base = cache() / "ggml-base-3.21.1";
    if (!std::filesystem::exists(metal) || !std::filesystem::exists(base))
      GTEST_SKIP() << "the corpus is not in " << cache() << ": run tests/corpus/fetch.py";
    request_.images = {{"libggml-metal.so", file_bytes(metal)},
                       {"libggml-base.dylib", file_bytes(base)}};
    Capture stock;
    stock.name = "Apple Paravirtual device";
    stock.system.is_virtual = true;
    for (const std::int64_t value : {1001, 1002, 1003, 1004, 1005, 2002, 3001, 3002, 3003})
      add(stock, family(value, true));
    add(stock, {{"maxThreadgroupMemoryLength", {}}, std::int64_t{32768}});
    add(stock, {{"hasUnifiedMemory", {}}, true});
    add(stock, {{"maxBufferLength", {}}, std::int64_t{8} << 30});
    add(stock, {{"recommendedMaxWorkingSetSize", {}}, std::int64_t{4} << 30});
    request_.devices = {{stock, "", {}}};
    SimStep init;
    init.symbol = "_ggml_metal_device_init";
    init.arguments = {std::int64_t{0}, std::int64_t{1}};
    request_.steps = {init};
    request_.runs = {{"stock", {}, {}}};
  }

  static void add(Capture& capture, Answer answer) {
    capture.answers.push_back({std::move(answer), Evidence::measured, {}});
  }
  void override_with(std::vector<std::int64_t> families) {
    SimRun run;
    for (const std::int64_t value : families) {
      run.id += std::to_string(value) + " ";
      run.answers.push_back(family(value, true));
    }
    request_.runs.push_back(std::move(run));
  }
  static std::vector<std::string> bytes(const SimDifference& difference) {
    std::vector<std::string> all;
    for (const auto& byte : difference.bytes)
      all.push_back(byte.where.substr(byte.where.rfind('+')) + " " + byte.before + " " +
                    byte.after);
    return all;
  }

  SimRequest request_;
};

TEST_F(Ggml, FiveBytesAndFourLinesHangOnTwoAnswers) {
  override_with({1006, 1007});
  const SimResult result = simulated(request_);
  ASSERT_FALSE(result.runs[0].stop) << outcome(result.runs[0]);
  ASSERT_FALSE(result.runs[1].stop) << outcome(result.runs[1]);
  const SimDifference& difference = result.differences[0];
  EXPECT_EQ(difference.verdict, SimDifference::Verdict::differs);
  EXPECT_THAT(bytes(difference), ElementsAre("+0x148 00 01", "+0x149 00 01", "+0x14b 00 01",
                                             "+0x14f 00 01", "+0x154 05 07"));
  std::vector<std::string> after;
  for (const auto& line : difference.log) after.push_back(line.after);
  EXPECT_THAT(after, ElementsAre("ggml_metal_device_init: GPU family: MTLGPUFamilyApple7  (1007)",
                                 "ggml_metal_device_init: simdgroup reduction   = true",
                                 "ggml_metal_device_init: simdgroup matrix mul. = true",
                                 "ggml_metal_device_init: has bfloat            = true"));
  for (const SimImport& import : result.runs[1].imports)
    EXPECT_NE(import.fidelity, Fidelity::unknown) << import.name;
}

/// Which answers change what, one by one: the minimal sets follow from these.
TEST_F(Ggml, EachAnswerByItself) {
  for (const std::int64_t value : {1006, 1007, 1008, 1009, 5001, 5002}) override_with({value});
  const auto differences = simulated(request_).differences;
  ASSERT_EQ(differences.size(), 6u);
  EXPECT_THAT(bytes(differences[0]), ElementsAre("+0x14b 00 01", "+0x154 05 06"));
  EXPECT_THAT(bytes(differences[1]),
              ElementsAre("+0x148 00 01", "+0x149 00 01", "+0x14f 00 01", "+0x154 05 07"));
  EXPECT_THAT(bytes(differences[2]), ElementsAre("+0x154 05 08"));
  EXPECT_THAT(bytes(differences[3]), ElementsAre("+0x154 05 09"));
  EXPECT_THAT(bytes(differences[4]), ElementsAre("+0x148 00 01", "+0x14b 00 01"));
  EXPECT_THAT(bytes(differences[5]), IsEmpty());
}

/// The byte at `offset` of the object that the run wrote there.
std::optional<bool> flag_of(const Trace& trace, const std::string& object, std::int64_t offset) {
  for (const SimWrite& write : trace.writes) {
    const std::int64_t at = offset - static_cast<std::int64_t>(write.offset);
    if (write.object != object || at < 0 || at >= std::ssize(write.bytes)) continue;
    return write.bytes[static_cast<std::size_t>(at)] != 0;
  }
  return std::nullopt;
}

/// What the audit derives from the code without running it is what the code does: every flag of the
/// device that hangs on answers alone, under every set of four families.
TEST_F(Ggml, FlagsAreWhatTheAuditSaysOfThem) {
  constexpr std::array<std::int64_t, 4> families{1006, 1007, 5001, 5002};
  for (unsigned set = 1; set < 16; ++set) {
    std::vector<std::int64_t> some;
    for (unsigned i = 0; i < 4; ++i)
      if (set >> i & 1) some.push_back(families[i]);
    override_with(some);
  }
  const SimResult result = simulated(request_);
  const std::string where = result.differences.at(1).bytes.at(0).where;  // of {1007}
  const std::string device = where.substr(0, where.rfind('+'));
  const Bytes bytes = request_.images[0].bytes;
  const Findings findings = audit_file({bytes.begin(), bytes.end()}, "ggml-3.21.1").at(0);
  std::set<std::int64_t> compared;
  for (const Gate& gate : findings.gates) {
    if (gate.where.kind != Gate::Where::Kind::field || gate.function != "_ggml_metal_device_init")
      continue;
    const auto expression = Predicate::parse(gate.expr);
    ASSERT_TRUE(expression) << gate.expr;
    for (std::size_t run = 0; run < result.runs.size(); ++run) {
      const World world = [&](const Atom& atom) -> Value {
        if (atom.kind == AtomKind::env) return false;
        if (atom.kind != AtomKind::answer) return {};
        for (const Answer& answer : request_.runs[run].answers)
          if (answer.key == atom.key) return answer.value;
        const Value stock = request_.devices[0].capture.answer(atom.key);
        return is_known(stock) || atom.key.query != "supportsFamily:" ? stock : Value{false};
      };
      const Truth expected = expression->evaluate(world);
      const auto written = flag_of(result.runs[run], device, gate.where.offset);
      if (expected == Truth::unknown || gate.where.size != 1) continue;
      compared.insert(gate.where.offset);
      EXPECT_EQ(written.value_or(false), expected == Truth::yes)
          << gate.expr << " at " << gate.where.offset << " with " << request_.runs[run].id;
    }
  }
  EXPECT_TRUE(std::ranges::includes(compared, std::array<std::int64_t, 3>{0x148, 0x149, 0x14b}));
}

/// Nothing depends on where the host put things, on what ran before, or on the time of day.
TEST_F(Ggml, TwentyRunsAreOne) {
  request_.runs.clear();
  for (int i = 0; i < 10; ++i) request_.runs.push_back({std::to_string(i), {}, {}});
  const auto run = [&] {
    Json json = to_json(simulated(request_));
    for (Json& trace : json.at("runs")) trace.erase("id");
    for (const Json& trace : json.at("runs")) EXPECT_EQ(trace, json.at("runs")[0]);
    return json.at("runs")[0];
  };
  const Json first = run();
  const std::vector<std::uint8_t> elsewhere(request_.images[0].bytes.begin(),
                                            request_.images[0].bytes.end());
  request_.images[0].bytes = elsewhere;
  EXPECT_EQ(run(), first);
}

}  // namespace
}  // namespace metaldoctor::testing
