// Every function of fixtures/pitfalls.mm on both architectures: what it returns, or how it stops.
#include <gmock/gmock.h>

#include "harness.h"

namespace metaldoctor::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct Row {
  const char* function;
  const char* outcome;
};

constexpr Row returning[] = {
    {"structures_directly", "1024"},
    {"relocations", "118"},
    {"thread_locals", "8"},
    {"weak_import", "2"},
    {"page_size", "16384"},
    {"newer_instructions", "9"},
    {"error_out", "1"},
    {"typed_selectors", "1024"},
    {"unknown_selector", "1"},
    {"nil_messages", "0"},
    {"strings", "1"},
    {"collections", "14"},
    {"enumeration", "1"},
    {"own_class", "27"},
    {"once", "1"},
    {"apply", "10"},
    {"background_loop", "1"},
    {"threads", "6"},
    {"sorted", "12345"},
    {"many_variables", "4096"},
    {"unknown_import", "0"},
    {"metal_class", "1"},
    {"driver_class_before_device", "1"},
};

// The start of "kind: text at place".
constexpr Row stopping[] = {
    {"endless", "budget-instructions: "},
    {"huge", "budget-memory: 1099511627776 bytes"},
    {"many", "budget-memory: "},
    {"recursion", "stack-overflow: "},
    {"nested", "budget-call-depth: "},
    {"null_read", "null-access: "},
    {"null_call", "null-call: "},
    {"wild_call", "wild-jump: "},
    {"write_constant", "read-only-write: "},
    {"gives_up", "b"},  // breakpoint, or bad-instruction for ud2
    {"aborts", "abort: the program called _abort"},
    {"system_call", "system-call: "},
    {"bad_receiver", "bad-receiver: "},
    {"bad_free", "bad-free: "},
    {"chatter", "budget-log: "},
    {"busy_imports", "budget-instructions: the budget is spent in imported functions"},
    {"many_small", "budget-memory: "},
    {"many_selectors", "budget-objects: "},
    {"many_texts", "budget-memory: "},
};

class Pitfalls : public EachArchitecture {};
INSTANTIATE_TEST_SUITE_P(, Pitfalls, ::testing::Values("arm64", "x86_64"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(Pitfalls, Return) {
  for (const Row& row : returning) {
    const SimResult result = simulated(request(GetParam(), row.function));
    EXPECT_EQ(outcome(result.runs[0]), row.outcome) << row.function;
  }
}

TEST_P(Pitfalls, StopWithAName) {
  for (const Row& row : stopping) {
    SimRequest asked = request(GetParam(), row.function);
    asked.budget.instructions = 6'000'000;
    asked.budget.memory = std::uint64_t{32} << 20;
    asked.budget.log_bytes = 10'000;
    const Trace trace = simulated(asked).runs[0];
    EXPECT_THAT(outcome(trace), StartsWith(row.outcome)) << row.function;
    if (trace.stop) EXPECT_THAT(trace.stop->where, Not(HasSubstr("0x0"))) << row.function;
  }
}

TEST_P(Pitfalls, OpcodeFixupsAndOldInitialisers) {
  const std::string library = std::string("libpitfalls-opcodes-") + GetParam() + ".dylib";
  for (const Row& row : returning) {
    const SimResult result = simulated(request(GetParam(), row.function, {}, library));
    EXPECT_EQ(outcome(result.runs[0]), row.outcome) << row.function;
  }
}

TEST_P(Pitfalls, VariableArguments) {
  EXPECT_EQ(log_of(simulated(request(GetParam(), "variadics")).runs[0]),
            "-7|text|1.50|1099511627776|c|  2.2|42  |4|beef\n");
  EXPECT_EQ(log_of(simulated(request(GetParam(), "variadic_list")).runs[0]),
            "1 2 3 4 5 6 7 eight 9.5 10.5\n");
}

TEST_P(Pitfalls, StructuresThroughMemory) {
  SimRequest asked = request(GetParam(), "structures");
  asked.devices[0].capture.system.os = "15.4.1";
  EXPECT_EQ(outcome(simulated(asked).runs[0]), "3072015");
}

TEST_P(Pitfalls, TheClockIsFixedOrRefused) {
  const Trace trace = simulated(request(GetParam(), "clock_register")).runs[0];
  const bool arm = std::string_view(GetParam()) == "arm64";
  EXPECT_THAT(outcome(trace), StartsWith(arm ? "24000000000" : "host-dependent: "));
}

TEST_P(Pitfalls, UnknownImportsAreLoud) {
  const Trace trace = simulated(request(GetParam(), "unknown_import")).runs[0];
  const auto unknown = [](const SimImport& i) {
    return i.fidelity == Fidelity::unknown && i.calls == 1;
  };
  ASSERT_EQ(std::ranges::count_if(trace.imports, unknown), 1);
  EXPECT_THAT(trace.assumptions, Contains(HasSubstr("_md_never_heard_of is not known")));
}

TEST_P(Pitfalls, UnknownSelectorsAreAssumptions) {
  const Trace trace = simulated(request(GetParam(), "unknown_selector")).runs[0];
  EXPECT_THAT(trace.assumptions, Contains(HasSubstr("neverDocumentedProperty")));
  EXPECT_THAT(simulated(request(GetParam(), "typed_selectors")).runs[0].assumptions,
              Contains("maxTotalThreadsPerThreadgroup is 1024"));
}

TEST_P(Pitfalls, ExitRunsHandlers) {
  const Trace trace = simulated(request(GetParam(), "leaves")).runs[0];
  EXPECT_EQ(trace.exit_status, 3);
  EXPECT_FALSE(trace.stop);
  EXPECT_EQ(log_of(trace), "farewell\n");
}

TEST_P(Pitfalls, NoHandleLooksLikeTwoSmallNumbers) {
  SimRequest asked = request(GetParam(), "error_out");
  asked.steps[1].symbol = "_pointer_noise";
  const Trace trace = simulated(asked).runs[0];
  for (const SimWrite& write : trace.writes)
    for (std::size_t i = 0; i + 8 <= write.bytes.size(); i += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, write.bytes.data() + i, 8);
      if (!write.pointers.contains(write.offset + i)) continue;
      EXPECT_GT(word >> 32, 10'000u);
      EXPECT_GT(word & 0xffffffff, 10'000u);
    }
}

TEST_P(Pitfalls, PointersAreComparedByName) {
  SimRequest asked = request(GetParam(), "pointer_noise");
  asked.runs = {{"stock", {}, {}}, {"override", {family(1006, true)}, {}}};
  const SimDifference difference = simulated(asked).differences[0];
  ASSERT_EQ(difference.bytes.size(), 8u) << "only kept[0], which one run left alone";
  for (const auto& byte : difference.bytes) EXPECT_EQ(byte.before, "-");
}

TEST_P(Pitfalls, EqualRunsAreEqual) {
  SimRequest asked = request(GetParam(), "strings");
  asked.runs.clear();
  for (int i = 0; i < 20; ++i) asked.runs.push_back({std::to_string(i), {}, {}});
  const SimResult result = simulated(asked);
  for (const SimDifference& difference : result.differences) {
    EXPECT_EQ(difference.verdict, SimDifference::Verdict::no_difference_observed);
    EXPECT_EQ(difference.first_branch, "");
  }
  for (const Trace& trace : result.runs) EXPECT_EQ(trace.walk, result.runs[0].walk);
}

TEST_P(Pitfalls, AStoppedRunProvesNothing) {
  SimRequest asked = request(GetParam(), "aborts");
  asked.runs.push_back({"again", {}, {}});
  EXPECT_EQ(simulated(asked).differences[0].verdict, SimDifference::Verdict::inconclusive);
}

TEST_P(Pitfalls, TimeEndsARunThatInstructionsDoNot) {
  SimRequest asked = request(GetParam(), "endless");
  asked.budget.instructions = ~std::uint64_t{0} / 2;
  asked.budget.milliseconds = 3;
  std::uint64_t now = 0;
  const auto result = simulate(tables(), asked, {[&now] { return now++; }});
  ASSERT_TRUE(result);
  EXPECT_THAT(outcome(result->runs[0]), StartsWith("budget-time: "));
}

/// Damage anywhere in the headers, fixups and code gives an error or a named stop.
TEST_P(Pitfalls, DamagedImagesNeverCrash) {
  const Bytes good =
      file_bytes(fixture(std::string("libpitfalls-opcodes-") + GetParam() + ".dylib"));
  std::uint32_t random = 1;
  const auto next = [&random] { return random = random * 1664525 + 1013904223; };
  for (int round = 0; round < 150; ++round) {
    std::vector<std::uint8_t> bad(good.begin(), good.end());
    const std::size_t reach = round % 2 ? bad.size() : 4096;
    for (int i = 0; i < 1 + round % 7; ++i)
      bad[(next() >> 8) % reach] = static_cast<std::uint8_t>(next() >> 16);
    if (round % 5 == 0) bad.resize((next() >> 4) % bad.size());
    SimRequest asked = request(GetParam(), "collections");
    asked.images[0].bytes = bad;
    asked.budget.instructions = 100'000;
    asked.budget.memory = std::uint64_t{16} << 20;
    const auto result = simulate(tables(), asked, {});
    if (!result) EXPECT_NE(result.error().what, "");
  }
}

TEST_P(Pitfalls, LibrariesBesideTheFile) {
  SimRequest asked = request(GetParam(), "user", {}, "libfixture-user.dylib");
  EXPECT_THAT(*missing_libraries(asked), ElementsAre("libfixture-base.dylib"));
  const std::string base = fixture("libfixture-base.dylib");
  asked.images.push_back({base, file_bytes(base)});
  EXPECT_THAT(*missing_libraries(asked), ElementsAre());
  EXPECT_EQ(outcome(simulated(asked).runs[0]), "68");
}

TEST_P(Pitfalls, AProgramHasArgumentsAndAStatus) {
  SimRequest asked = request(GetParam(), "", {}, "fixture-program");
  asked.steps[1].kind = SimStep::Kind::main;
  asked.steps[1].argv = {"program", "first", "second"};
  asked.environment = {{"NAME", "value"}};
  const Trace trace = simulated(asked).runs[0];
  EXPECT_EQ(trace.exit_status, 3);
  EXPECT_EQ(log_of(trace), "first\nsecond\nNAME=value\n");
}

}  // namespace
}  // namespace metaldoctor::testing
