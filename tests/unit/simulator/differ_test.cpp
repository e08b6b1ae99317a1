// Differences between two traces, on traces made by hand.
#include <gmock/gmock.h>

#include "harness.h"

namespace metaldoctor::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Verdict = SimDifference::Verdict;

SimWrite write(std::string object, std::uint64_t offset, std::vector<std::uint8_t> bytes) {
  return {std::move(object), offset, std::move(bytes), {}};
}

std::vector<std::string> bytes(const SimDifference& difference) {
  std::vector<std::string> all;
  for (const auto& byte : difference.bytes)
    all.push_back(byte.where + " " + byte.before + " " + byte.after);
  return all;
}

TEST(Differ, EqualTracesShowNothing) {
  Trace trace;
  trace.writes = {write("a", 8, {1, 2})};
  trace.log = {{"stderr", "line", "line"}};
  const SimDifference difference = compare_traces(trace, trace);
  EXPECT_EQ(difference.verdict, Verdict::no_difference_observed);
  EXPECT_THAT(difference.bytes, IsEmpty());
}

TEST(Differ, BytesByObjectAndOffset) {
  Trace from, to;
  from.writes = {write("a", 8, {1, 2, 3}), write("gone", 0, {1})};
  to.writes = {write("a", 9, {2, 4, 5}), write("new", 0, {1, 2})};
  EXPECT_THAT(
      bytes(compare_traces(from, to)),
      ElementsAre("a+0x8 01 -", "a+0xa 03 04", "a+0xb - 05", "gone 1 bytes -", "new - 2 bytes"));
}

TEST(Differ, PointersByWhatTheyPointTo) {
  Trace from, to;
  from.writes = {write("a", 0, {1, 1, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1})};
  to.writes = {write("a", 0, {9, 9, 9, 9, 9, 9, 9, 9, 8, 9, 9, 9, 9, 9, 9, 9})};
  from.writes[0].pointers = {{0, "x"}, {8, "heap(f#1)+0x0"}};
  to.writes[0].pointers = {{0, "x"}, {8, "heap(g#1)+0x0"}};
  EXPECT_THAT(bytes(compare_traces(from, to)), ElementsAre("a+0x8 heap(f#1)+0x0 heap(g#1)+0x0"));
}

TEST(Differ, LinesArePairedBetweenCommonOnes) {
  const auto line = [](std::string text) { return SimLogLine{"stderr", text, text}; };
  Trace from, to;
  from.log = {line("a"), line("old"), line("b"), line("c"), line("d")};
  to.log = {line("a"), line("new"), line("b"), line("d"), line("e")};
  std::vector<std::string> all;
  for (const auto& pair : compare_traces(from, to).log)
    all.push_back(pair.before + "|" + pair.after);
  EXPECT_THAT(all, ElementsAre("old|new", "c|", "|e"));
}

TEST(Differ, LinesAreComparedWithoutAddresses) {
  Trace from, to;
  from.log = {{"stderr", "at 0x1000", "at heap(f#1)+0x0"}};
  to.log = {{"stderr", "at 0x2000", "at heap(f#1)+0x0"}};
  EXPECT_THAT(compare_traces(from, to).log, IsEmpty());
}

TEST(Differ, FirstBranch) {
  Trace from, to;
  from.path = {"x+0x0", "x+0x10", "x+0x20"};
  to.path = {"x+0x0", "x+0x10", "x+0x30"};
  from.walk = to.walk = {0, 1, 2};
  const SimDifference difference = compare_traces(from, to);
  EXPECT_EQ(difference.first_branch, "x+0x10");
  EXPECT_THAT(difference.only_before, ElementsAre("x+0x20"));
  EXPECT_THAT(difference.only_after, ElementsAre("x+0x30"));
}

TEST(Differ, AStopMakesItInconclusive) {
  Trace from, to;
  to.stop = SimStop{"abort", "", ""};
  EXPECT_EQ(compare_traces(from, to).verdict, Verdict::inconclusive);
}

TEST(Differ, QueriesAndMessages) {
  Trace from, to;
  from.queries = {{{"supportsFamily:", {1006}}, 0, "", "x", 0, false, 1}};
  to.queries = {{{"supportsFamily:", {1006}}, 1, "", "x", 0, false, 1},
                {{"name", {}}, 0, "Apple M1", "x", 0, false, 1}};
  from.messages = {{"-[A b]", 2}};
  to.messages = {{"-[A b]", 3}, {"-[A c]", 1}};
  const SimDifference difference = compare_traces(from, to);
  EXPECT_THAT(difference.queries_changed, ElementsAre("device 0: supportsFamily:1006: 0 -> 1",
                                                      "device 0: name: not asked -> Apple M1"));
  ASSERT_EQ(difference.messages.size(), 2u);
  EXPECT_EQ(difference.messages[0].before, "2 x -[A b]");
  EXPECT_EQ(difference.messages[1].before, "");
}

}  // namespace
}  // namespace metaldoctor::testing
