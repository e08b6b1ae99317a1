#include "shim/inject/resolve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shim/inject/bundle.h"
#include "shim/inject/injection.h"
#include "tests/unit/inject/memory_file_system.h"

namespace metaldoctor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MemoryFileSystem;
using ::testing::SizeIs;

const Tables& tables() {
  static const Tables all = *Tables::embedded();
  return all;
}

MemoryFileSystem mac() {
  MemoryFileSystem files;
  for (const char* directory : {"/usr", "/usr/bin", "/bin", "/opt", "/opt/bin", "/home"}) {
    files.add_directory(directory);
  }
  for (const char* program : {"/usr/bin/env", "/bin/sh", "/opt/bin/server", "/opt/bin/python3",
                              "/usr/bin/python3", "/usr/bin/sudo"}) {
    files.add_file(program, "\xcf\xfa\xed\xfe", 0755);
  }
  files.add_file("/opt/bin/tool", "#!/usr/bin/env python3\nprint()\n", 0755);
  files.add_file("/opt/bin/split", "#!/usr/bin/env -S python3 -u\n", 0755);
  files.add_file("/opt/bin/npm", "#! /opt/bin/python3 -E\n", 0755);
  files.add_file("/opt/bin/shell", "#!/bin/sh\nexec server\n", 0755);
  files.add_file("/opt/bin/loop", "#!/opt/bin/loop\n", 0755);
  files.add_file("/opt/bin/data", "no program", 0644);
  return files;
}

Result<ResolvedCommand> resolved(std::vector<std::string> command) {
  MemoryFileSystem files = mac();
  return resolve_command(tables(), files, command, "/opt/bin:/usr/bin:/bin");
}

TEST(Resolve, APlainProgram) {
  const auto found = resolved({"server", "-m", "x y"});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->program, "/opt/bin/server");
  EXPECT_EQ(found->name, "server");
  EXPECT_THAT(found->arguments, ElementsAre("-m", "x y"));
  EXPECT_THAT(found->steps, IsEmpty());
  EXPECT_THAT(found->advice, IsEmpty());
}

TEST(Resolve, EnvIsDoneWithoutIt) {
  const auto found = resolved({"/usr/bin/env", "A=1", "B=x=y", "server", "C=3"});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->program, "/opt/bin/server");
  EXPECT_THAT(found->assignments, ElementsAre("A=1", "B=x=y"));
  EXPECT_THAT(found->arguments, ElementsAre("C=3"));
  EXPECT_THAT(found->steps, SizeIs(1));
}

TEST(Resolve, EnvWithOptionsStays) {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"env", "-i", "server"}, {"env"}, {"env", "A=1"}}) {
    const auto found = resolved(command);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->program, "/usr/bin/env");
    EXPECT_THAT(found->advice, SizeIs(1));
  }
}

TEST(Resolve, AScriptIsItsInterpreter) {
  const auto tool = resolved({"tool", "x"});
  ASSERT_TRUE(tool) << tool.error().what;
  EXPECT_EQ(tool->program, "/opt/bin/python3");
  EXPECT_THAT(tool->arguments, ElementsAre("/opt/bin/tool", "x"));
  EXPECT_THAT(tool->advice, IsEmpty());
  EXPECT_THAT(resolved({"split"})->arguments, ElementsAre("-u", "/opt/bin/split"));
  const auto npm = resolved({"/opt/bin/npm", "x"});
  EXPECT_EQ(npm->program, "/opt/bin/python3");
  EXPECT_THAT(npm->arguments, ElementsAre("-E", "/opt/bin/npm", "x"));
}

TEST(Resolve, AProtectedLauncherGetsAdvice) {
  EXPECT_THAT(resolved({"shell"})->advice, ElementsAre(HasSubstr("shell drops the variables")));
  EXPECT_THAT(resolved({"/usr/bin/python3", "x.py"})->advice, ElementsAre(HasSubstr("venv")));
  EXPECT_THAT(resolved({"sudo", "server"})->advice, ElementsAre(HasSubstr("setuid")));
}

TEST(Resolve, WhatCannotBeStarted) {
  EXPECT_EQ(resolved({"nothing"}).error().code, "cannot-start");
  EXPECT_EQ(resolved({"data"}).error().code, "cannot-start");
  EXPECT_THAT(resolved({"loop"}).error().what, HasSubstr("without end"));
  EXPECT_FALSE(resolved({"/opt/nothing"}));
  EXPECT_FALSE(resolved({"/opt/bin"}));
}

TEST(Bundle, NamesItsProgram) {
  MemoryFileSystem files = mac();
  for (const char* directory : {"/opt/A.app", "/opt/A.app/Contents", "/opt/A.app/Contents/MacOS"}) {
    files.add_directory(directory);
  }
  EXPECT_EQ(program_of(files, "/opt/A.app").error().code, "not-a-program");
  const auto list = [&](const std::string& name) {
    files.add_file(
        "/opt/A.app/Contents/Info.plist",
        "<plist><dict><key>CFBundleExecutable</key><string>" + name + "</string></dict></plist>");
    return program_of(files, "/opt/A.app");
  };
  files.add_file("/opt/A.app/Contents/MacOS/Main", "x", 0755);
  EXPECT_EQ(*list("Main"), "/opt/A.app/Contents/MacOS/Main");
  EXPECT_EQ(list("../../../bin/server").error().code, "plist-malformed");
  EXPECT_EQ(list("..").error().code, "plist-malformed");
  EXPECT_EQ(list("").error().code, "plist-malformed");
  EXPECT_FALSE(list("Absent"));
  EXPECT_EQ(*program_of(files, "/opt/bin/server"), "/opt/bin/server");
}

TEST(Journal, OnlyAFileOfOnesOwn) {
  MemoryFileSystem files = mac();
  EXPECT_TRUE(check_journal_path(files, "/home/new"));
  files.add_file("/home/old", "x");
  EXPECT_EQ(check_journal_path(files, "/home/old")->size, 1u);
  for (const FileInfo::Kind kind :
       {FileInfo::Kind::link, FileInfo::Kind::other, FileInfo::Kind::directory}) {
    files.live["/home/bad"].kind = kind;
    EXPECT_EQ(check_journal_path(files, "/home/bad").error().fault, Fault::refused);
  }
}

TEST(Library, LiesInAPrivateDirectory) {
  MemoryFileSystem files = mac();
  const auto stored = store_library(files, "/home/cache/md", "l.dylib", "bytes");
  ASSERT_TRUE(stored) << stored.error().what;
  EXPECT_EQ(files.live.at("/home/cache/md").mode, 0700u);
  const int steps = files.steps;
  EXPECT_TRUE(store_library(files, "/home/cache/md", "l.dylib", "bytes"));
  EXPECT_EQ(files.steps, steps) << "the same bytes are not written again";
  files.live.at("/home/cache/md/l.dylib").bytes = "swapped";
  EXPECT_TRUE(store_library(files, "/home/cache/md", "l.dylib", "bytes"));
  EXPECT_EQ(files.live.at("/home/cache/md/l.dylib").bytes, "bytes");
  files.live.at("/home/cache/md").mode = 0777;
  EXPECT_EQ(store_library(files, "/home/cache/md", "l.dylib", "bytes").error().code,
            "directory-not-private");
  files.live.at("/home/cache/md").kind = FileInfo::Kind::link;
  EXPECT_FALSE(store_library(files, "/home/cache/md", "l.dylib", "bytes"));
  EXPECT_EQ(store_library(files, "/home/a:b", "l.dylib", "bytes").error().fault, Fault::refused);
}

}  // namespace
}  // namespace metaldoctor
