#include "shim/inject/launch_agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shim/inject/host_preference.h"
#include "shim/inject/injection.h"
#include "shim/inject/plist.h"
#include "shim/inject/wrapper.h"

namespace metaldoctor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

LaunchAgent agent() {
  LaunchAgent out;
  out.label = "com.example.server";
  out.command = {"/opt/bin/server", "--model", "it's \"quoted\" <&> ä"};
  out.library = "/Users/a/Library/Application Support/metaldoctor/l.dylib";
  return out;
}

std::string existing(const std::string& label = "com.example.server") {
  Plist list = Plist::empty();
  list.set_text("Label", label);
  list.set_texts("ProgramArguments", {"/opt/bin/old", "-x"});
  list.set_text("EnvironmentVariables", "KEPT", "1");
  list.set_text("EnvironmentVariables", "DYLD_INSERT_LIBRARIES",
                "/other/l.dylib:/old/libmetaldoctor-x.dylib");
  list.set_text("WorkingDirectory", "/tmp");
  list.set_truth("KeepAlive", true);
  return list.write();
}

TEST(LaunchAgent, ANewOneHasItsOwnVariablesOnly) {
  LaunchAgent wanted = agent();
  wanted.variables = {{"OLLAMA_HOST", "127.0.0.1"}};
  wanted.log = "/Users/a/log";
  ASSERT_TRUE(check_launch_agent(wanted));
  const auto text = agent_text(wanted, "", "t");
  ASSERT_TRUE(text);
  const auto list = Plist::read(*text, "t");
  EXPECT_EQ(list->text("Label"), wanted.label);
  EXPECT_EQ(list->texts("ProgramArguments"), wanted.command);
  EXPECT_EQ(list->text("EnvironmentVariables", "DYLD_INSERT_LIBRARIES"), wanted.library);
  EXPECT_EQ(list->text("EnvironmentVariables", "OLLAMA_HOST"), "127.0.0.1");
  EXPECT_EQ(list->text("StandardErrorPath"), "/Users/a/log");
  EXPECT_FALSE(list->has("RunAtLoad"));
  EXPECT_FALSE(list->has("KeepAlive"));
}

TEST(LaunchAgent, AnExistingOneKeepsItsKeys) {
  LaunchAgent wanted = agent();
  wanted.command.clear();
  const auto list = Plist::read(*agent_text(wanted, existing(), "t"), "t");
  EXPECT_EQ(list->texts("ProgramArguments"), (std::vector<std::string>{"/opt/bin/old", "-x"}));
  EXPECT_EQ(list->text("WorkingDirectory"), "/tmp");
  EXPECT_EQ(list->text("EnvironmentVariables", "KEPT"), "1");
  EXPECT_EQ(list->values().at("KeepAlive"), "true");
  EXPECT_EQ(list->text("EnvironmentVariables", "DYLD_INSERT_LIBRARIES"),
            wanted.library + ":/other/l.dylib");
  EXPECT_EQ(*agent_program(wanted, existing(), "t"), "/opt/bin/old");
}

TEST(LaunchAgent, ProgramWinsOverTheFirstArgument) {
  auto list = *Plist::read(existing(), "t");
  list.set_text("Program", "/opt/bin/real");
  LaunchAgent wanted = agent();
  EXPECT_EQ(Plist::read(*agent_text(wanted, list.write(), "t"), "t")->text("Program"),
            "/opt/bin/server");
  wanted.command.clear();
  EXPECT_EQ(*agent_program(wanted, list.write(), "t"), "/opt/bin/real");
}

TEST(LaunchAgent, RefusesHostileInput) {
  const std::vector<std::pair<std::string, void (*)(LaunchAgent&)>> cases{
      {"label", [](LaunchAgent& a) { a.label = "../../x"; }},
      {"label", [](LaunchAgent& a) { a.label = "a/b"; }},
      {"label", [](LaunchAgent& a) { a.label = "a\nb"; }},
      {"label", [](LaunchAgent& a) { a.label = ""; }},
      {"label", [](LaunchAgent& a) { a.label = ".hidden"; }},
      {"label", [](LaunchAgent& a) { a.label = "-x"; }},
      {"label", [](LaunchAgent& a) { a.label = std::string(200, 'a'); }},
      {"absolute", [](LaunchAgent& a) { a.command[0] = "server"; }},
      {"absolute", [](LaunchAgent& a) { a.command[0] = "/opt/../bin/server"; }},
      {"UTF-8", [](LaunchAgent& a) { a.command[1] = "\xff\xfe"; }},
      {"UTF-8", [](LaunchAgent& a) { a.command[1] = "a\x01z"; }},
      {"set by metaldoctor", [](LaunchAgent& a) { a.variables = {{"DYLD_LIBRARY_PATH", "x"}}; }},
      {"absolute", [](LaunchAgent& a) { a.log = "log"; }},
  };
  for (const auto& [what, spoil] : cases) {
    LaunchAgent wanted = agent();
    spoil(wanted);
    const auto checked = check_launch_agent(wanted);
    ASSERT_FALSE(checked) << what;
    EXPECT_EQ(checked.error().fault, Fault::refused);
    EXPECT_THAT(checked.error().what, HasSubstr(what));
  }
  EXPECT_THAT(agent_text(agent(), existing("com.example.other"), "t").error().what,
              HasSubstr("Label"));
  EXPECT_FALSE(agent_text(agent(), "not a list", "t"));
  LaunchAgent none = agent();
  none.command.clear();
  EXPECT_EQ(agent_program(none, "", "t").error().code, "no-program");
}

std::vector<std::string> joined(const std::vector<ReceiptCommand>& commands) {
  std::vector<std::string> out;
  for (const ReceiptCommand& command : commands) {
    std::string line;
    for (const std::string& word : command.argv) line += file_name_of(word) + ' ';
    out.push_back(line);
  }
  return out;
}

TEST(LaunchAgent, Commands) {
  ChangePlan fresh, edited;
  LaunchAgent wanted = agent();
  add_launchctl(wanted, "/p", false, 501, fresh);
  EXPECT_THAT(joined(fresh.after), ElementsAre("plutil -lint p ", "launchctl bootstrap 501 p ",
                                               "launchctl kickstart com.example.server "));
  EXPECT_EQ(fresh.after[2].argv[2], "gui/501/com.example.server");
  EXPECT_EQ(fresh.undo_before.size(), 1u);
  EXPECT_TRUE(fresh.undo_before[0].may_fail);
  EXPECT_TRUE(fresh.undo_after.empty());
  wanted.in_gui = false;
  add_launchctl(wanted, "/p", true, 501, edited);
  EXPECT_THAT(joined(edited.after),
              ElementsAre("plutil -lint p ", "launchctl bootout com.example.server ",
                          "launchctl bootstrap 501 p "));
  EXPECT_EQ(edited.after[2].argv[2], "user/501");
  EXPECT_EQ(edited.undo_after.size(), 1u);
  for (const ReceiptCommand& command : edited.after) {
    EXPECT_EQ(std::ranges::count(command.argv, "setenv"), 0);
  }
}

TEST(Wrapper, QuotesEverything) {
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
  const std::string text =
      *wrapper_text({"/opt/my program", "a'b", "\xff\n$x"}, {"A=b c"}, "/l'ib.dylib");
  EXPECT_THAT(text, HasSubstr("export A='b c'\n"));
  EXPECT_FALSE(wrapper_text({"/x"}, {"A B=c"}, "/l"));
  EXPECT_FALSE(wrapper_text({"/x"}, {"1=c"}, "/l"));
  EXPECT_FALSE(wrapper_text({"/x"}, {"A"}, "/l"));
  EXPECT_TRUE(is_wrapper(text));
  EXPECT_FALSE(is_wrapper("#!/bin/sh\nexec x\n"));
  EXPECT_THAT(text, HasSubstr("DYLD_INSERT_LIBRARIES='/l'\\''ib.dylib'${DYLD_INSERT_LIBRARIES:+:"
                              "$DYLD_INSERT_LIBRARIES}\n"));
  EXPECT_THAT(text, HasSubstr("exec '/opt/my program' 'a'\\''b' '\xff\n$x' \"$@\"\n"));
}

TEST(Injection, OneLibraryOfOursInTheList) {
  EXPECT_EQ(with_library("", "/n/libmetaldoctor-2.dylib"), "/n/libmetaldoctor-2.dylib");
  EXPECT_EQ(with_library("/a.dylib::/o/libmetaldoctor-1.dylib:/b.dylib", "/n/x.dylib"),
            "/n/x.dylib:/a.dylib:/b.dylib");
  EXPECT_EQ(with_library("/n/x.dylib", "/n/x.dylib"), "/n/x.dylib");
}

TEST(Injection, VariablesOfOneProcess) {
  const auto out = injected_environment({"A=1", "DYLD_INSERT_LIBRARIES=/x.dylib", "B=", "ODD"},
                                        {"A=2", "C=x=y"}, "/l.dylib", "/j");
  EXPECT_THAT(out,
              ElementsAre("B=", "ODD", "A=2", "C=x=y", "DYLD_INSERT_LIBRARIES=/l.dylib:/x.dylib",
                          "METALDOCTOR_JOURNAL=/j"));
}

class ScriptedRunner final : public ProcessRunner {
 public:
  CapturedRun answer;
  std::vector<std::string> asked;
  Result<CapturedRun> capture(const ChildCommand& command, const std::string&,
                              const CaptureLimits&) override {
    asked.push_back(command.program);
    return answer;
  }
  Result<ChildEnd> attend(const ChildCommand&) override { return ChildEnd{}; }
};

TEST(HostPreference, ReadsWhatDefaultsSays) {
  ScriptedRunner runner;
  runner.answer.out = "1\n";
  EXPECT_EQ(**read_preference(runner), "1");
  runner.answer.out = "maybe\n";
  EXPECT_FALSE(read_preference(runner));
  runner.answer = {{.code = 1}, "", "The domain/default pair of (x, y) does not exist\n"};
  EXPECT_EQ(*read_preference(runner), std::nullopt);
  runner.answer.err = "something else";
  EXPECT_FALSE(read_preference(runner));
}

TEST(HostPreference, PutsBackWhatWasThere) {
  const auto argv = [](const std::vector<ReceiptCommand>& commands) {
    return commands.empty() ? std::string() : commands[0].argv[1] + ' ' + commands[0].argv.back();
  };
  const ChangePlan fresh = preference_plan(true, std::nullopt);
  EXPECT_EQ(argv(fresh.after), "write true");
  EXPECT_EQ(argv(fresh.undo_after), "delete ForceUnrestrictedDeviceFeatureLevel");
  EXPECT_EQ(argv(preference_plan(true, "0").undo_after), "write false");
  EXPECT_EQ(argv(preference_plan(false, "1").after), "delete ForceUnrestrictedDeviceFeatureLevel");
  EXPECT_EQ(argv(preference_plan(false, "1").undo_after), "write true");
  EXPECT_TRUE(preference_plan(false, std::nullopt).after.empty());
}

}  // namespace
}  // namespace metaldoctor
