#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "tools/platform/posix_process_runner.h"

namespace metaldoctor {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

ChildCommand shell(const std::string& script) {
  ChildCommand command;
  command.program = "/bin/sh";
  command.arguments = {"-c", script};
  return command;
}

Result<CapturedRun> capture(const std::string& script, const std::string& input = {},
                            CaptureLimits limits = {}) {
  return PosixProcessRunner().capture(shell(script), input, limits);
}

TEST(Capture, TakesBothStreamsAndTheStatus) {
  const auto run = capture("cat; echo err >&2; exit 7", "in\n");
  ASSERT_TRUE(run);
  EXPECT_EQ(run->out, "in\n");
  EXPECT_EQ(run->err, "err\n");
  EXPECT_EQ(run->end.status(), 7);
  EXPECT_GT(run->end.process_id, 0);
}

TEST(Capture, NamesTheSignal) {
  const auto run = capture("kill -SEGV $$");
  ASSERT_TRUE(run);
  EXPECT_EQ(run->end.signal, SIGSEGV);
  EXPECT_EQ(run->end.status(), 128 + SIGSEGV);
}

TEST(Capture, MuchBothWaysDoesNotBlock) {
  const std::string input(std::size_t{4} << 20, 'x');
  const auto run = capture("cat", input);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->out, input);
}

TEST(Capture, InputThatNobodyReadsIsNoFault) {
  const auto run = capture("exit 0", std::string(std::size_t{4} << 20, 'x'));
  ASSERT_TRUE(run);
  EXPECT_EQ(run->end.status(), 0);
}

TEST(Capture, KillsWhatIsLate) {
  const auto start = std::chrono::steady_clock::now();
  const auto run = capture("exec sleep 30", {}, {.timeout = milliseconds(100)});
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, "timed-out");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(Capture, KillsWhatIsLateAfterClosingItsStreams) {
  const auto run = capture("exec >&- 2>&- sleep 30", {}, {.timeout = milliseconds(100)});
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, "timed-out");
}

TEST(Capture, KillsWhatWritesTooMuch) {
  const auto run = capture("exec cat /dev/zero", {}, {.output = 100'000});
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, "too-large");
}

TEST(Capture, SaysWhatCannotBeStarted) {
  ChildCommand command;
  command.program = "/nonexistent/tool";
  const auto run = PosixProcessRunner().capture(command, "", {});
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, "cannot-start");
  EXPECT_EQ(run.error().fault, Fault::input);
}

TEST(Capture, GivesExactlyTheEnvironment) {
  ChildCommand command = shell("echo \"$A|$HOME\"");
  command.environment = {{"A=1", "PATH=/bin:/usr/bin"}};
  const auto run = PosixProcessRunner().capture(command, "", {});
  ASSERT_TRUE(run);
  EXPECT_EQ(run->out, "1|\n");
}

TEST(Capture, LeavesNoDescriptorsBehind) {
  const int before = ::dup(0);
  ::close(before);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(capture("true"));
  const int after = ::dup(0);
  ::close(after);
  EXPECT_EQ(before, after);
}

TEST(Attend, GivesStatusAndSignal) {
  PosixProcessRunner runner;
  EXPECT_EQ(runner.attend(shell("exit 9"))->status(), 9);
  EXPECT_EQ(runner.attend(shell("kill -KILL $$"))->status(), 128 + SIGKILL);
  ChildCommand nothing;
  nothing.program = "/nonexistent";
  EXPECT_EQ(runner.attend(nothing).error().code, "cannot-start");
}

// The sender is a child of the attended one: another process than both ends of the relay.
TEST(Attend, PassesSignalsOn) {
  PosixProcessRunner runner;
  const std::string script = "trap 'exit 42' TERM; (sleep 0.2; kill -TERM " +
                             std::to_string(::getpid()) + ") & while :; do sleep 0.05; done";
  EXPECT_EQ(runner.attend(shell(script))->status(), 42);
}

TEST(Attend, PutsTheHandlersBack) {
  struct sigaction before{}, after{};
  ::sigaction(SIGTERM, nullptr, &before);
  ASSERT_TRUE(PosixProcessRunner().attend(shell("true")));
  ::sigaction(SIGTERM, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

TEST(Attend, IgnoredSignalsStayIgnored) {
  ::signal(SIGHUP, SIG_IGN);
  const auto end = PosixProcessRunner().attend(shell("kill -HUP $$; exit 5"));
  ::signal(SIGHUP, SIG_DFL);
  EXPECT_EQ(end->status(), 5);
}

}  // namespace
}  // namespace metaldoctor
