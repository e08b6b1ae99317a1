#include <sys/stat.h>

#include "tests/inject/support.h"

namespace metaldoctor {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::Home;
using ::testing::Not;

CapturedRun run(const Home& home, std::vector<std::string> words,
                std::vector<std::string> options = {}) {
  std::vector<std::string> arguments{"run", "--profile", home.path("profile.json")};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.insert(arguments.end(), {"--", METALDOCTOR_STAND_IN});
  arguments.insert(arguments.end(), words.begin(), words.end());
  return home.tool(arguments);
}

TEST(Run, SaysWhatWasAskedAndAnswered) {
  const Home home;
  const CapturedRun done = run(home, {"load", "waiting", "installed", "ask", "exit=5"});
  EXPECT_EQ(done.end.status(), 5);
  EXPECT_EQ(done.out, "");
  EXPECT_THAT(done.err, HasSubstr("the changed answers took hold [measured]"));
  EXPECT_THAT(done.err, HasSubstr("2 question(s) asked, 1 answered otherwise"));
  EXPECT_THAT(done.err, HasSubstr("supportsFamily:1007 (Apple7): no -> yes, first asked by "
                                  "/opt/lib/libggml-metal.dylib+0x6854"));
  EXPECT_THAT(done.err, Not(HasSubstr("5001")));
}

TEST(Run, PassesTheStreamsThrough) {
  const Home home;
  const auto done = home.tool({"run", "--profile", home.path("profile.json"), "--",
                               METALDOCTOR_STAND_IN, "library", "journal", "input"},
                              "typed\n");
  EXPECT_THAT(done.out, HasSubstr(home.path(".cache/metaldoctor/libmetaldoctor-")));
  EXPECT_THAT(done.out, HasSubstr(home.path(".cache/metaldoctor/journals/")));
  EXPECT_THAT(done.out, EndsWith("typed\n"));
}

TEST(Run, StatusAndSignals) {
  const Home home;
  EXPECT_EQ(run(home, {"exit=0"}).end.status(), 0);
  EXPECT_EQ(run(home, {"exit=255"}).end.status(), 255);
  EXPECT_EQ(run(home, {"kill=9"}).end.status(), 128 + 9);
  EXPECT_EQ(run(home, {"kill=11"}).end.status(), 128 + 11);
  EXPECT_EQ(run(home, {"signal-parent"}).end.status(), 42);
}

TEST(Run, WhatDidNotTakeHoldIsSaidAndWhy) {
  const Home home;
  struct Case {
    std::vector<std::string> words;
    const char* outcome;
    const char* text;
  };
  for (const Case& each : std::vector<Case>{
           {{"exit=0"}, "not-loaded", "kept no journal"},
           {{"abort"}, "not-loaded", "as dyld does when it cannot load an inserted library"},
           {{"load", "waiting"}, "no-device", "the process started no"},
           {{"load", "waiting", "refused"}, "refused-itself", "has no such method"},
           {{"garbage"}, "no-journal", "cannot be read"},
           {{"link"}, "no-journal", "cannot be read"}}) {
    const auto done = run(home, each.words, {"-o", home.path("run.json")});
    EXPECT_THAT(done.err, AllOf(HasSubstr("did NOT take hold"), HasSubstr(each.text)));
    const auto document = read_document(home.read("run.json"), "run", "run.json");
    ASSERT_TRUE(document) << document.error().what;
    EXPECT_EQ(document->at("outcome"), each.outcome);
    EXPECT_EQ(document->at("status"), done.end.status());
    EXPECT_EQ(run(home, each.words, {"--require-shim"}).end.status(), 4) << each.outcome;
  }
  EXPECT_EQ(run(home, {"load", "installed", "exit=3"}, {"--require-shim"}).end.status(), 3);
}

TEST(Run, LeavesNoJournalBehindUnlessAsked) {
  const Home home;
  (void)run(home, {"load", "installed"});
  EXPECT_TRUE(testing::fs::is_empty(home.path(".cache/metaldoctor/journals")));
  const std::string journal = home.path("kept.wire");
  EXPECT_THAT(run(home, {"load", "installed", "ask"}, {"--journal", journal}).err,
              HasSubstr("the journal is " + journal));
  // A second run appends, and reports its own part only.
  EXPECT_THAT(run(home, {"exit=0"}, {"--journal", journal}).err, HasSubstr("did NOT take hold"));
  EXPECT_THAT(home.read("kept.wire"), HasSubstr("supportsFamily:"));
}

TEST(Run, RefusesAHostileJournal) {
  const Home home;
  testing::fs::create_symlink("/etc/passwd", home.path("link"));
  ASSERT_EQ(::mkfifo(home.path("fifo").c_str(), 0600), 0);
  for (const char* name : {"link", "fifo", "."}) {
    const auto done = run(home, {"exit=0"}, {"--journal", home.path(name)});
    EXPECT_EQ(done.end.status(), 4) << name << done.err;
    EXPECT_THAT(done.err, HasSubstr("journal-path"));
  }
}

TEST(Run, RefusesACacheOfOthers) {
  const Home home;
  testing::fs::create_directories(home.path(".cache/metaldoctor"));
  testing::fs::permissions(home.path(".cache/metaldoctor"), testing::fs::perms::all);
  const auto done = run(home, {"exit=0"});
  EXPECT_EQ(done.end.status(), 4);
  EXPECT_THAT(done.err, HasSubstr("directory-not-private"));
}

TEST(Run, LooksBehindScriptsAndEnv) {
  const Home home;
  home.write("script", std::string("#!") + METALDOCTOR_STAND_IN + " load\n");
  testing::fs::permissions(home.path("script"), testing::fs::perms::owner_all);
  const auto done = home.tool({"run", "--profile", home.path("profile.json"), "--", "env", "A=1",
                               home.path("script"), "installed", "exit=6"});
  EXPECT_EQ(done.end.status(), 6);
  EXPECT_THAT(done.err, HasSubstr("is a script of"));
  EXPECT_THAT(done.err, HasSubstr("took hold"));
}

TEST(Run, UsageAndInput) {
  const Home home;
  EXPECT_EQ(home.tool({"run", "--profile", home.path("profile.json")}).end.status(), 2);
  EXPECT_EQ(home.tool({"run", "--", METALDOCTOR_STAND_IN}).end.status(), 2);
  EXPECT_EQ(home.tool({"run", "--auto", "--profile", "x", "--", "true"}).end.status(), 2);
  EXPECT_EQ(home.tool({"run", "--profile", "none", "--", "true"}).end.status(), 3);
  EXPECT_EQ(
      home.tool({"run", "--profile", home.path("profile.json"), "--", "no such"}).end.status(), 3);
  // Words that CLI11 would split.
  EXPECT_EQ(run(home, {"[a,b]", "--help", "--", "exit=9"}).end.status(), 9);
}

TEST(Run, AProfileAboveItsHostIsRefused) {
  const Home home;
  std::string profile = Home::kProfile;
  profile.replace(profile.find("1007"), 4, "1009");
  home.write("profile.json", profile);
  EXPECT_EQ(run(home, {"exit=0"}).end.status(), 4);
}

TEST(Trace, ListsEveryQuestionByItsCaller) {
  const Home home;
  const auto done = home.tool({"trace", "-o", home.path("t.json"), "--", METALDOCTOR_STAND_IN,
                               "load", "installed", "ask", "exit=2"});
  EXPECT_EQ(done.end.status(), 2);
  EXPECT_THAT(done.err, AllOf(HasSubstr("/opt/lib/libggml-metal.dylib"),
                              HasSubstr("supportsFamily:5001 (Metal3) = no")));
  EXPECT_TRUE(read_document(home.read("t.json"), "run", "t.json"));
}

TEST(Trace, TheTreeCounts) {
  const Home home;
  const std::vector<std::string> words{"--", METALDOCTOR_STAND_IN, "load", "waiting", "child"};
  std::vector<std::string> one{"trace"}, tree{"trace", "--tree"};
  one.insert(one.end(), words.begin(), words.end());
  tree.insert(tree.end(), words.begin(), words.end());
  EXPECT_THAT(home.tool(one).err, HasSubstr("nothing was observed"));
  EXPECT_THAT(home.tool(tree).err, HasSubstr("kept its journal"));
}

}  // namespace
}  // namespace metaldoctor
