#include "shim/inject/change_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/inject/memory_file_system.h"

namespace metaldoctor {
namespace {

using testing::FixedClock;
using ::testing::HasSubstr;
using testing::Killed;
using testing::MemoryFileSystem;
using Stop = MemoryFileSystem::Stop;
using Tree = MemoryFileSystem::Tree;

const std::string kState = "/home/state";
const std::string kAgent = "/home/Library/LaunchAgents/a.plist";
const std::string kLibrary = "/home/opt/md/lib/l.dylib";

MemoryFileSystem home() {
  MemoryFileSystem files;
  files.add_directory("/home");
  files.add_directory("/home/Library");
  files.add_directory("/home/Library/LaunchAgents");
  files.add_file(kAgent, "the old agent, longer than the new one", 0600);
  files.add_file("/home/other", "not ours");
  return files;
}

/// A new file below directories that do not exist, one that is replaced, and one more new file.
ChangePlan change() {
  ChangePlan plan;
  plan.action = "launch-agent";
  plan.subject = "a";
  plan.files = {
      {kLibrary, "library", 0644}, {kAgent, "new agent", 0644}, {"/home/wrapper", "w", 0755}};
  return plan;
}

Tree applied_tree() {
  MemoryFileSystem files = home();
  FixedClock clock;
  EXPECT_TRUE(ChangeSet(files, clock, kState).apply(change()));
  return files.tree_without(kState);
}

Result<Receipt> roll_back_newest(MemoryFileSystem& files, bool force = false) {
  FixedClock clock;
  ChangeSet changes(files, clock, kState);
  auto newest = changes.newest_applied("", "");
  if (!newest) return tl::unexpected(newest.error());
  if (!*newest) return Receipt{};
  return changes.rollback(**newest, force);
}

Result<Receipt> apply_anew(MemoryFileSystem& files) {
  FixedClock clock;
  clock.now += 1000;
  return ChangeSet(files, clock, kState).apply(change());
}

TEST(ChangeSet, AppliesAndRollsBackExactly) {
  MemoryFileSystem files = home();
  const Tree before = files.tree_without(kState);
  FixedClock clock;
  ChangeSet changes(files, clock, kState);
  const auto receipt = changes.apply(change());
  ASSERT_TRUE(receipt) << receipt.error().what;
  EXPECT_EQ(receipt->id, "20261201T181413Z-a");
  EXPECT_EQ(files.live.at(kAgent).bytes, "new agent");
  EXPECT_EQ(files.live.at("/home/wrapper").mode, 0755u);
  const auto undone = changes.rollback(*receipt, false);
  ASSERT_TRUE(undone) << undone.error().what;
  EXPECT_EQ(files.tree_without(kState), before);
  EXPECT_EQ(changes.find(receipt->id)->state, Receipt::State::rolled_back);
  // Again, and again without a name.
  EXPECT_TRUE(changes.rollback(*undone, false));
  EXPECT_TRUE(roll_back_newest(files));
  EXPECT_EQ(files.tree_without(kState), before);
}

TEST(ChangeSet, APlanWritesNothing) {
  MemoryFileSystem files = home();
  FixedClock clock;
  const auto planned = ChangeSet(files, clock, kState).plan(change());
  ASSERT_TRUE(planned);
  EXPECT_EQ(files.steps, 0);
  EXPECT_EQ(planned->directories,
            (std::vector<std::string>{"/home/opt", "/home/opt/md", "/home/opt/md/lib"}));
  EXPECT_FALSE(planned->files[0].before.exists);
  EXPECT_TRUE(planned->files[1].before.exists);
}

// The process is killed, or the power is cut, before each single change of apply. Then `rollback`
// leaves the tree as it was, and `apply` leaves it fully applied and can be rolled back.
TEST(ChangeSet, ApplySurvivesAnyInterruption) {
  const Tree before = home().tree_without(kState), after = applied_tree();
  int interrupted = 0;
  for (const bool power : {false, true}) {
    for (int k = 0;; ++k) {
      const auto crashed = [&] {
        MemoryFileSystem files = home();
        files.stop = Stop::kill;
        files.steps_left = k;
        try {
          (void)apply_anew(files);
          files.stop = Stop::never;
          return std::pair(files, false);
        } catch (const Killed&) {
        }
        files.run_on();
        if (power) files.power_cut();
        return std::pair(files, true);
      };
      auto [files, stopped] = crashed();
      if (!stopped) break;
      ++interrupted;
      ASSERT_TRUE(roll_back_newest(files)) << k;
      ASSERT_EQ(files.tree_without(kState), before) << "rollback after step " << k;
      auto [other, again] = crashed();
      const auto receipt = apply_anew(other);
      ASSERT_TRUE(receipt) << k << ": " << receipt.error().where << receipt.error().what;
      ASSERT_EQ(other.tree_without(kState), after) << "apply after step " << k;
      ASSERT_TRUE(roll_back_newest(other));
      ASSERT_EQ(other.tree_without(kState), before) << "apply, rollback after step " << k;
    }
  }
  EXPECT_GT(interrupted, 60);
}

TEST(ChangeSet, RollbackSurvivesAnyInterruption) {
  const Tree before = home().tree_without(kState), after = applied_tree();
  int interrupted = 0;
  for (const bool power : {false, true}) {
    for (int k = 0;; ++k) {
      const auto crashed = [&] {
        MemoryFileSystem files = home();
        EXPECT_TRUE(apply_anew(files));
        if (power) files.power_cut();
        EXPECT_EQ(files.tree_without(kState), after);
        files.stop = Stop::kill;
        files.steps_left = k;
        try {
          (void)roll_back_newest(files);
          files.stop = Stop::never;
          return std::pair(files, false);
        } catch (const Killed&) {
        }
        files.run_on();
        if (power) files.power_cut();
        return std::pair(files, true);
      };
      auto [files, stopped] = crashed();
      if (!stopped) break;
      ++interrupted;
      ASSERT_TRUE(roll_back_newest(files)) << k;
      ASSERT_EQ(files.tree_without(kState), before) << "rollback after step " << k;
      auto [other, again] = crashed();
      FixedClock clock;
      ChangeSet changes(other, clock, kState);
      ASSERT_TRUE(changes.recover());
      const auto newest = changes.newest_applied("", "");
      ASSERT_TRUE(newest);
      const Tree& expected = *newest ? after : before;
      ASSERT_EQ(other.tree_without(kState), expected) << "recover after step " << k;
    }
  }
  EXPECT_GT(interrupted, 30);
}

// A full disk, and a single failure, at each change: apply takes its own part back at once.
TEST(ChangeSet, ApplyLeavesNothingHalfWritten) {
  const Tree before = home().tree_without(kState), after = applied_tree();
  for (const bool once : {false, true}) {
    for (int k = 0;; ++k) {
      MemoryFileSystem files = home();
      files.stop = Stop::fail;
      files.fails_once = once;
      files.steps_left = k;
      const auto receipt = apply_anew(files);
      if (receipt && files.stop != Stop::never && files.steps_left >= 0) break;
      files.run_on();
      if (receipt) {
        ASSERT_EQ(files.tree_without(kState), after) << k;
        continue;
      }
      EXPECT_EQ(receipt.error().fault, Fault::input);
      if (once) {
        ASSERT_EQ(files.tree_without(kState), before) << k;
      }
      ASSERT_TRUE(roll_back_newest(files)) << k;
      ASSERT_EQ(files.tree_without(kState), before) << k;
    }
  }
}

TEST(ChangeSet, AFullDiskDoesNotDisturbRollback) {
  const Tree before = home().tree_without(kState), after = applied_tree();
  for (int k = 0;; ++k) {
    MemoryFileSystem files = home();
    ASSERT_TRUE(apply_anew(files));
    files.stop = Stop::fail;
    files.steps_left = k;
    const auto undone = roll_back_newest(files);
    if (undone && files.steps_left >= 0) break;
    files.run_on();
    ASSERT_TRUE(roll_back_newest(files)) << k;
    ASSERT_EQ(files.tree_without(kState), before) << k;
  }
}

TEST(ChangeSet, RefusesToUndoWhatWasEditedSince) {
  MemoryFileSystem files = home();
  const auto receipt = apply_anew(files);
  files.live[kAgent].bytes = "edited by the user";
  const Tree edited = files.tree_without(kState);
  const auto refused = roll_back_newest(files);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().fault, Fault::refused);
  EXPECT_EQ(refused.error().code, "changed-since");
  EXPECT_EQ(files.tree_without(kState), edited);
  ASSERT_TRUE(roll_back_newest(files, true));
  EXPECT_EQ(files.tree_without(kState), home().tree_without(kState));
  EXPECT_EQ(files.live.at(kState + "/" + receipt->id + "/1.edited").bytes, "edited by the user");
}

// Refused or failed, a second apply leaves the first one as it is.
TEST(ChangeSet, ASecondApplyThatFailsKeepsTheFirst) {
  const Tree after = applied_tree();
  for (int k = -1;; ++k) {
    MemoryFileSystem files = home();
    ASSERT_TRUE(apply_anew(files));
    ChangePlan second = change();
    second.files[1].bytes = "another agent";
    if (k < 0) second.files[0].path = "/a/../b";
    files.stop = Stop::fail;
    files.fails_once = true;
    files.steps_left = k < 0 ? 10'000 : k;
    FixedClock clock;
    if (ChangeSet(files, clock, kState).apply(second)) break;
    files.run_on();
    // A take-back that was itself stopped is finished by the next run.
    ChangeSet changes(files, clock, kState);
    const auto left = changes.newest_applied("", "");
    ASSERT_TRUE(left);
    if (!*left || (*left)->state != Receipt::State::applied) continue;
    ASSERT_EQ(files.tree_without(kState), after) << k;
  }
}

TEST(ChangeSet, AFileOfTheUsersIsNoStagingFile) {
  MemoryFileSystem files = home();
  files.add_file(kAgent + ".metaldoctor-new", "the user's");
  ASSERT_TRUE(apply_anew(files));
  ASSERT_TRUE(roll_back_newest(files));
  EXPECT_EQ(files.live.at(kAgent + ".metaldoctor-new").bytes, "the user's");
}

TEST(ChangeSet, RemainsAreOnlyWhatAnInterruptedStartLeaves) {
  MemoryFileSystem files = home();
  files.add_directory(kState, 0700);
  for (const char* name : {"mine", "20261201T181413Z-a", "20261201T181413Z-b+new"}) {
    files.add_directory(kState + "/" + name, 0700);
    files.add_file(kState + "/" + name + "/1.edited", "kept");
  }
  files.add_directory(kState + "/20261201T181413Z-c+new", 0700);
  files.add_file(kState + "/20261201T181413Z-c+new/0.before", "a copy");
  const auto remains = [&](const std::string& name) {
    return files.live.contains(kState + "/" + name);
  };
  ASSERT_TRUE(apply_anew(files));
  EXPECT_TRUE(remains("mine/1.edited"));
  EXPECT_TRUE(remains("20261201T181413Z-a/1.edited"));
  EXPECT_TRUE(remains("20261201T181413Z-b+new/1.edited"));
  EXPECT_FALSE(remains("20261201T181413Z-c+new"));
}

TEST(ChangeSet, ADamagedReceiptStandsAlone) {
  MemoryFileSystem files = home();
  const auto first = apply_anew(files);
  ASSERT_TRUE(first);
  files.live[kState + "/" + first->id + "/receipt.json"].bytes = "damaged";
  FixedClock clock;
  ChangeSet changes(files, clock, kState);
  ChangePlan other;
  other.action = "wrapper";
  other.subject = "/home/w2";
  other.files = {{"/home/w2", "w", 0755}};
  ASSERT_TRUE(changes.apply(other));
  const auto all = changes.receipts();
  ASSERT_TRUE(all);
  EXPECT_EQ(all->receipts.size(), 1u);
  ASSERT_EQ(all->damaged.size(), 1u);
  EXPECT_EQ(all->damaged[0].id, first->id);
  EXPECT_FALSE(changes.apply(change())) << "the damaged one may be of this subject";
}

TEST(ChangeSet, KeepsADirectoryThatOthersUse) {
  MemoryFileSystem files = home();
  ASSERT_TRUE(apply_anew(files));
  files.add_file("/home/opt/theirs", "x");
  ASSERT_TRUE(roll_back_newest(files));
  EXPECT_TRUE(files.live.contains("/home/opt/theirs"));
  EXPECT_FALSE(files.live.contains("/home/opt/md"));
}

TEST(ChangeSet, RefusesPathsThatAreNoFiles) {
  for (const FileInfo::Kind kind :
       {FileInfo::Kind::link, FileInfo::Kind::directory, FileInfo::Kind::other}) {
    MemoryFileSystem files = home();
    files.live[kAgent].kind = kind;
    const auto receipt = apply_anew(files);
    ASSERT_FALSE(receipt);
    EXPECT_EQ(receipt.error().fault, Fault::refused);
  }
  for (const char* path : {"relative", "/a/../b", "/a//b", "/a/\xff", "/a\nb", "/"}) {
    MemoryFileSystem files = home();
    FixedClock clock;
    ChangePlan plan = change();
    plan.files[0].path = path;
    const auto receipt = ChangeSet(files, clock, kState).apply(plan);
    ASSERT_FALSE(receipt) << path;
    EXPECT_EQ(receipt.error().code, "bad-path") << path;
    EXPECT_EQ(files.tree_without(kState), home().tree_without(kState));
  }
}

TEST(ChangeSet, RefusesADirectoryOfOthers) {
  MemoryFileSystem files = home();
  files.add_directory(kState, 0777);
  EXPECT_EQ(apply_anew(files).error().code, "directory-not-private");
}

TEST(Receipt, RoundTrip) {
  MemoryFileSystem files = home();
  const auto receipt = apply_anew(files);
  const std::string text = files.live.at(kState + "/" + receipt->id + "/receipt.json").bytes;
  const auto read = read_receipt(text, "r");
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(to_json(*read), to_json(*receipt));
}

// Every value of the document, changed: the check finds all of them.
TEST(Receipt, EditedByHandIsNotObeyed) {
  MemoryFileSystem files = home();
  const auto receipt = apply_anew(files);
  const std::string path = kState + "/" + receipt->id + "/receipt.json";
  const std::string text = files.live.at(path).bytes;
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"/home/wrapper", "/home/other"},
           {"\"mode\": \"0755\"", "\"mode\": \"4755\""},
           {"\"state\": \"applied\"", "\"state\": \"prepared\""},
           {"1.before", "../../x"},
           {"/home/opt/md/lib\"", "/home/opt/md/lib/..\""}}) {
    std::string edited = text;
    ASSERT_NE(edited.find(from), std::string::npos) << from;
    edited.replace(edited.find(from), from.size(), to);
    files.live[path].bytes = edited;
    const auto undone = roll_back_newest(files);
    ASSERT_FALSE(undone) << from;
    EXPECT_EQ(undone.error().code, "receipt-edited") << from;
  }
  files.live[path].bytes = text.substr(0, 100);
  EXPECT_FALSE(roll_back_newest(files));
  files.live[path].bytes = text;
  EXPECT_TRUE(roll_back_newest(files));
}

TEST(Receipt, IsObeyedInItsPlaceOnly) {
  MemoryFileSystem files = home();
  const auto receipt = apply_anew(files);
  files.add_file("/home/copy.json",
                 files.live.at(kState + "/" + receipt->id + "/receipt.json").bytes);
  FixedClock clock;
  EXPECT_EQ(ChangeSet(files, clock, kState).find("/home/copy.json").error().code, "receipt-moved");
}

TEST(Receipt, KeptBytesThatWereChangedAreNotRestored) {
  MemoryFileSystem files = home();
  const auto receipt = apply_anew(files);
  files.live[kState + "/" + receipt->id + "/1.before"].bytes = "forged";
  EXPECT_EQ(roll_back_newest(files).error().code, "receipt-edited");
}

}  // namespace
}  // namespace metaldoctor
