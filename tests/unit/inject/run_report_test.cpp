#include "shim/inject/run_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tables/wire_format.h"

namespace metaldoctor {
namespace {

using ::testing::HasSubstr;
using Outcome = RunReport::Outcome;

const Tables& tables() {
  static const Tables all = *Tables::embedded();
  return all;
}

std::string text(wire::Line line) {
  const std::size_t size = line.finish();
  return {line.data(), size};
}

/// What the library writes, record by record.
struct JournalText {
  std::string out;
  JournalText& process(std::uint64_t pid, const char* state = "active") {
    out += text(wire::Line(wire::kHeader).text("shim").text("0.1.0"));
    out += text(wire::Line("process").number(pid).text("/opt/server"));
    out += text(wire::Line("profile")
                    .number(pid)
                    .text("section")
                    .text(state)
                    .number(2)
                    .text("host")
                    .text("all")
                    .text("process"));
    return *this;
  }
  JournalText& install(std::uint64_t pid, const char* state, const char* reason = "") {
    out += text(wire::Line("install")
                    .number(pid)
                    .text("_MTLDevice")
                    .text(state)
                    .number(1)
                    .text(reason)
                    .text("initGPUFamilySupport"));
    return *this;
  }
};

RunReport judged(const std::string& journal, bool tree = false, int signal = 0) {
  RunReport report;
  report.end.process_id = 7;
  report.end.signal = signal;
  if (!journal.empty()) report.journal = *read_journal(tables(), journal, "journal");
  judge(report, tree);
  return report;
}

TEST(RunReport, EveryOutcome) {
  struct Case {
    std::string journal;
    Outcome outcome;
    const char* reason;
  };
  const std::vector<Case> cases{
      {JournalText().process(7).install(7, "waiting").install(7, "installed").out,
       Outcome::took_hold, ""},
      {JournalText().process(7).install(7, "waiting").out, Outcome::no_device,
       "started no Metal device"},
      {JournalText().process(7).install(7, "refused", "the class has no such method").out,
       Outcome::refused_itself, "has no such method"},
      {JournalText().process(7).install(7, "waiting").install(7, "refused", "x").out,
       Outcome::refused_itself, "changed nothing"},
      {JournalText().process(7, "malformed").out, Outcome::malformed, "configuration"},
      {"", Outcome::not_loaded, "kept no journal"},
      {JournalText().process(8).install(8, "installed").out, Outcome::not_loaded, "no journal"},
  };
  for (const Case& each : cases) {
    const RunReport report = judged(each.journal);
    EXPECT_EQ(report.outcome, each.outcome) << each.reason;
    EXPECT_THAT(report.reason, HasSubstr(each.reason));
  }
}

TEST(RunReport, AChildCountsInATree) {
  const std::string journal =
      JournalText().process(7).install(7, "waiting").process(8).install(8, "installed").out;
  EXPECT_EQ(judged(journal, false).outcome, Outcome::no_device);
  EXPECT_EQ(judged(journal, true).outcome, Outcome::took_hold);
  EXPECT_EQ(judged(JournalText().process(8).install(8, "waiting").out, true).outcome,
            Outcome::no_device);
}

TEST(RunReport, AnAbortIsNamed) {
  EXPECT_THAT(judged("", false, 6).reason, HasSubstr("dyld"));
  EXPECT_THAT(judged("", false, 9).reason, ::testing::Not(HasSubstr("dyld")));
}

TEST(RunReport, AbsenceIsExplainedByPreflight) {
  RunReport report;
  Preflight slice;
  slice.facts = {{"set_id", "yes"}};
  decide(tables(), slice);
  report.preflight = ProgramPreflight{{slice}, 0};
  judge(report, false);
  ASSERT_EQ(report.hints.size(), 2u);
  EXPECT_THAT(report.hints[0], HasSubstr("setuid"));
}

}  // namespace
}  // namespace metaldoctor
