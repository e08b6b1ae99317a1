#include "shim/inject/plist.h"
#include "tests/inject/support.h"
#include "tests/unit/inject/program_builder.h"

namespace metaldoctor {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Home;
using ::testing::Not;
namespace fs = testing::fs;

const std::string kAgent = "Library/LaunchAgents/com.example.server.plist";

/// A home with a program of macOS in it: signed ad hoc, arm64.
void add_program(const Home& home, const std::string& name = "bin/server",
                 const testing::ProgramBuilder& program = {}) {
  const auto bytes = program.build();
  home.write(name, {bytes.begin(), bytes.end()});
  fs::permissions(home.path(name), fs::perms::owner_all);
}

std::vector<std::string> agent(const Home& home, std::vector<std::string> more = {}) {
  std::vector<std::string> out{"apply", "--launch-agent", "com.example.server", "--profile",
                               home.path("profile.json")};
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

std::vector<std::string> with_program(std::vector<std::string> arguments, const Home& home) {
  arguments.insert(arguments.end(), {"--", home.path("bin/server"), "--model", "it's <a> \"b\""});
  return arguments;
}

TEST(Apply, ADryRunWritesNothing) {
  const Home home;
  add_program(home);
  const auto before = home.tree("none");
  const auto done = home.tool(with_program(agent(home, {"--dry-run"}), home));
  EXPECT_EQ(done.end.status(), 0) << done.err;
  EXPECT_THAT(done.out, AllOf(HasSubstr("planned"), HasSubstr("launchctl bootstrap gui/"),
                              HasSubstr(kAgent)));
  EXPECT_EQ(home.tree("none"), before);
}

TEST(Apply, ANewAgentAndBack) {
  const Home home;
  add_program(home);
  const auto before = home.tree();
  const auto done = home.tool(with_program(agent(home, {"--format", "json"}), home));
  ASSERT_EQ(done.end.status(), 0) << done.err;
  const auto receipt = read_document(done.out, "receipt", "out");
  ASSERT_TRUE(receipt) << receipt.error().what;
  const auto list = Plist::read(home.read(kAgent), "agent");
  ASSERT_TRUE(list);
  EXPECT_EQ(list->texts("ProgramArguments"),
            (std::vector<std::string>{home.path("bin/server"), "--model", "it's <a> \"b\""}));
  EXPECT_TRUE(fs::exists(*list->text("EnvironmentVariables", "DYLD_INSERT_LIBRARIES")));
  EXPECT_THAT(done.err, HasSubstr("not macOS"));
  const auto undone = home.tool({"rollback"});
  EXPECT_EQ(undone.end.status(), 0) << undone.err;
  EXPECT_EQ(home.tree(), before);
  const auto again = home.tool({"rollback"});
  EXPECT_EQ(again.end.status(), 0);
  EXPECT_THAT(again.err, HasSubstr("nothing is applied"));
  const auto named = home.tool({"rollback", receipt->at("id").get<std::string>()});
  EXPECT_EQ(named.end.status(), 0);
  EXPECT_THAT(named.err, HasSubstr("already"));
}

TEST(Apply, AnExistingAgentKeepsItsBytesAfterRollback) {
  const Home home;
  add_program(home);
  const std::string text =
      "<?xml version=\"1.0\"?><!-- by hand --><plist version=\"1.0\"><dict><key>Label"
      "</key><string>com.example.server</string><key>KeepAlive</key><true/>"
      "<key>Program</key><string>" +
      home.path("bin/server") + "</string></dict></plist>";
  home.write(kAgent, text);
  fs::permissions(home.path(kAgent), fs::perms::owner_read | fs::perms::owner_write);
  const auto before = home.tree();
  // Applied twice: one rollback leads to where it was before both.
  for (int i = 0; i < 2; ++i) {
    const auto done = home.tool(agent(home));
    ASSERT_EQ(done.end.status(), 0) << done.err;
  }
  const auto list = Plist::read(home.read(kAgent), "agent");
  EXPECT_EQ(list->values().at("KeepAlive"), "true");
  EXPECT_TRUE(list->text("EnvironmentVariables", "DYLD_INSERT_LIBRARIES"));
  ASSERT_EQ(home.tool({"rollback"}).end.status(), 0);
  EXPECT_EQ(home.tree(), before);
}

TEST(Apply, AWrapperRunsItsProgram) {
  const Home home;
  const auto before = home.tree();
  const auto done =
      home.tool({"apply", "--wrapper", home.path("bin/w"), "--profile", home.path("profile.json"),
                 "--env", "A=1", "--", METALDOCTOR_STAND_IN, "library", "it's"});
  ASSERT_EQ(done.end.status(), 0) << done.err;
  ChildCommand command;
  command.program = home.path("bin/w");
  command.arguments = {"exit=7"};
  const auto ran = PosixProcessRunner().capture(command, "", {});
  EXPECT_EQ(ran->end.status(), 7);
  EXPECT_THAT(ran->out, HasSubstr(home.path(".local/state/metaldoctor/libraries/wrapper-")));
  // A file that is no wrapper is left alone.
  home.write("bin/own", "#!/bin/sh\n");
  const auto refused = home.tool({"apply", "--wrapper", home.path("bin/own"), "--profile",
                                  home.path("profile.json"), "--", METALDOCTOR_STAND_IN});
  EXPECT_EQ(refused.end.status(), 4);
  fs::remove(home.path("bin/own"));
  ASSERT_EQ(home.tool({"rollback"}).end.status(), 0);
  EXPECT_EQ(home.tree(), before);
}

TEST(Apply, ARefusedSecondApplyChangesNothing) {
  const Home home;
  const auto wrapper = [&](const std::string& program) {
    return home.tool({"apply", "--wrapper", home.path("w"), "--profile", home.path("profile.json"),
                      "--", program});
  };
  ASSERT_EQ(wrapper(METALDOCTOR_STAND_IN).end.status(), 0);
  const auto before = home.tree("none");
  EXPECT_EQ(wrapper("/nonexistent/prog").end.status(), 3);
  EXPECT_EQ(home.tree("none"), before);
}

TEST(Apply, RefusesAProgramThatWouldFail) {
  const Home home;
  testing::ProgramBuilder hardened;
  hardened.signature->flags = 0x10000;
  hardened.signature->cms = true;
  add_program(home, "bin/server", hardened);
  const auto before = home.tree("none");
  const auto done = home.tool(with_program(agent(home), home));
  EXPECT_EQ(done.end.status(), 4);
  EXPECT_THAT(done.err, HasSubstr("preflight-hardened"));
  EXPECT_EQ(home.tree("none"), before);
}

TEST(Apply, HostileInputIsRefusedAndNothingWritten) {
  const Home home;
  add_program(home);
  std::string bomb = "<plist><dict><key>Label</key>";
  for (int i = 0; i < 12'000; ++i) bomb += "<array>";
  struct Case {
    std::vector<std::string> arguments;
    int status;
    std::string agent;
  };
  const auto labelled = [&](const std::string& label) {
    auto out = agent(home);
    out[2] = label;
    return with_program(out, home);
  };
  auto bytes = agent(home);
  bytes.insert(bytes.end(), {"--", home.path("bin/server"), "\xff\xfe"});
  for (const Case& each :
       std::vector<Case>{{labelled("../x"), 4, ""},
                         {labelled("a/b"), 4, ""},
                         {labelled("a\nb"), 4, ""},
                         {bytes, 4, ""},
                         {agent(home, {"--env", "DYLD_X=1"}), 4, ""},
                         {agent(home), 2, ""},
                         {agent(home), 3, bomb},
                         {agent(home), 3, "bplist00 no"},
                         {agent(home), 4,
                          "<plist><dict><key>Label</key><string>other</string></dict></plist>"}}) {
    const auto before_write = home.tree("none");
    if (!each.agent.empty()) home.write(kAgent, each.agent);
    const auto before = home.tree();
    const auto done = home.tool(each.arguments);
    EXPECT_EQ(done.end.status(), each.status) << done.err;
    EXPECT_NE(done.err, "");
    EXPECT_EQ(home.tree(), before) << done.err;
    fs::remove_all(home.path("Library"));
  }
}

// The state directory cannot be made; a read-only home gives the same error to anyone but root.
TEST(Apply, AHomeThatCannotBeWrittenIsSaid) {
  const Home home;
  add_program(home);
  home.write(".local", "a file in the way");
  const auto before = home.tree("none");
  const auto done = home.tool(with_program(agent(home), home));
  EXPECT_EQ(done.end.status(), 3) << done.err;
  EXPECT_THAT(done.err, HasSubstr("file-system"));
  EXPECT_EQ(home.tree("none"), before);
  home.write(".cache", "another");
  EXPECT_EQ(home.tool({"trace", "--", METALDOCTOR_STAND_IN}).end.status(), 3);
}

TEST(Apply, ALinkInTheWayIsRefused) {
  const Home home;
  add_program(home);
  home.write("elsewhere", "<plist><dict/></plist>");
  fs::create_directories(home.path("Library/LaunchAgents"));
  fs::create_symlink(home.path("elsewhere"), home.path(kAgent));
  const auto done = home.tool(with_program(agent(home), home));
  EXPECT_NE(done.end.status(), 0);
  EXPECT_EQ(home.read("elsewhere"), "<plist><dict/></plist>");
}

TEST(Rollback, AnEditedReceiptIsNotObeyed) {
  const Home home;
  add_program(home);
  home.write("victim", "precious");
  ASSERT_EQ(home.tool(with_program(agent(home), home)).end.status(), 0);
  const auto after = home.tree();
  const std::string receipts = ".local/state/metaldoctor/receipts";
  const std::string id = fs::directory_iterator(home.path(receipts))->path().filename().string();
  const std::string name = receipts + "/" + id + "/receipt.json";
  const std::string text = home.read(name);
  std::string edited = text;
  edited.replace(edited.find(home.path(kAgent)), home.path(kAgent).size(), home.path("victim"));
  home.write(name, edited);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"rollback"}, {"rollback", "--force"}, {"rollback", id}}) {
    const auto done = home.tool(words);
    EXPECT_EQ(done.end.status(), 4) << done.err;
    EXPECT_THAT(done.err, HasSubstr("receipt-edited"));
  }
  EXPECT_EQ(home.tree(), after);
  home.write(name, text);
  EXPECT_EQ(home.tool({"rollback", home.path(name)}).end.status(), 0);
  EXPECT_EQ(home.tool({"rollback", "no-such-receipt"}).end.status(), 3);
}

TEST(Rollback, WhatWasEditedSinceIsNotLost) {
  const Home home;
  add_program(home);
  ASSERT_EQ(home.tool(with_program(agent(home), home)).end.status(), 0);
  home.write(kAgent, "edited");
  EXPECT_EQ(home.tool({"rollback"}).end.status(), 4);
  EXPECT_EQ(home.read(kAgent), "edited");
  EXPECT_EQ(home.tool({"rollback", "--force"}).end.status(), 0);
  EXPECT_FALSE(fs::exists(home.path(kAgent)));
}

TEST(Host, RefusesPolitelyElsewhere) {
  const Home home;
  const auto status = home.tool({"host", "status"});
  EXPECT_EQ(status.end.status(), 0);
  EXPECT_THAT(status.out, AllOf(HasSubstr("unknown"), HasSubstr("every guest"),
                                HasSubstr("tart stop"), HasSubstr("changed no reported answer")));
  const auto enable = home.tool({"host", "enable"});
  EXPECT_EQ(enable.end.status(), 4);
  EXPECT_THAT(enable.err, HasSubstr("not-macos"));
  const auto planned = home.tool({"host", "enable", "--dry-run"});
  EXPECT_EQ(planned.end.status(), 0);
  EXPECT_THAT(planned.out, HasSubstr("defaults write"));
  const auto json = home.tool({"host", "status", "--format", "json"});
  EXPECT_TRUE(read_document(json.out, "host-preference", "out"));
}

TEST(Preflight, OfABundleAndItsDocument) {
  const Home home;
  add_program(home, "A.app/Contents/MacOS/Main");
  home.write("A.app/Contents/Info.plist",
             "<plist><dict><key>CFBundleExecutable</key><string>Main</string></dict></plist>");
  const auto text = home.tool({"preflight", home.path("A.app"), "-v"});
  EXPECT_EQ(text.end.status(), 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("arm64: works [measured]"), HasSubstr("ad-hoc")));
  const auto json = home.tool({"preflight", "--format", "json", home.path("A.app")});
  const auto document = read_document(json.out, "preflight", "out");
  ASSERT_TRUE(document) << document.error().what;
  EXPECT_EQ(document->at("verdict"), "works");
  const auto refused =
      home.tool({"preflight", "--at", "/usr/bin/x", "--sip", "on", home.path("A.app")});
  EXPECT_EQ(refused.end.status(), 4);
  EXPECT_EQ(home.tool({"preflight", "--library", "/none.dylib", home.path("A.app")}).end.status(),
            4);
}

}  // namespace
}  // namespace metaldoctor
