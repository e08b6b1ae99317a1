// The interruptions of change_set_test.cpp once more, on the real file system: stopped before every
// third change, what lies on disk is hashed afterwards.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "shim/inject/change_files.h"
#include "shim/inject/change_set.h"
#include "tests/unit/inject/memory_file_system.h"
#include "tools/platform/posix_file_system.h"

namespace metaldoctor {
namespace {

namespace fs = std::filesystem;
using testing::FixedClock;
using testing::Killed;

/// The real one, until the given number of changes is used up.
class StoppingFileSystem final : public FileSystem {
 public:
  int steps_left = 1'000'000;

  Result<FileInfo> info(const std::string& path) override { return real_.info(path); }
  Result<std::string> read(const std::string& path, std::size_t limit) override {
    return real_.read(path, limit);
  }
  Result<std::string> read_start(const std::string& path, std::size_t size) override {
    return real_.read_start(path, size);
  }
  Result<std::string> real_path(const std::string& path) override { return real_.real_path(path); }
  Result<std::vector<std::string>> list(const std::string& path) override {
    return real_.list(path);
  }
  Result<void> write_new(const std::string& path, std::string_view bytes, unsigned mode) override {
    if (steps_left == 1) (void)real_.write_new(path, bytes.substr(0, bytes.size() / 2), mode);
    step();
    step();
    return real_.write_new(path, bytes, mode);
  }
  Result<void> rename(const std::string& from, const std::string& to) override {
    step();
    return real_.rename(from, to);
  }
  Result<void> remove(const std::string& path) override {
    step();
    return real_.remove(path);
  }
  Result<void> make_directory(const std::string& path, unsigned mode) override {
    step();
    return real_.make_directory(path, mode);
  }
  Result<void> remove_directory(const std::string& path) override {
    step();
    return real_.remove_directory(path);
  }
  Result<void> sync_directory(const std::string& path) override {
    step();
    return real_.sync_directory(path);
  }

 private:
  void step() {
    if (steps_left-- <= 0) throw Killed{};
  }
  PosixFileSystem real_;
};

class RealHome {
 public:
  RealHome() {
    std::string pattern = (fs::temp_directory_path() / "metaldoctor-change-XXXXXX").string();
    path_ = fs::canonical(::mkdtemp(pattern.data()));
    fs::create_directories(path_ / "agents");
    std::ofstream(path_ / "agents/a.plist") << "the old agent";
    fs::permissions(path_ / "agents/a.plist", fs::perms::owner_read | fs::perms::owner_write);
  }
  ~RealHome() { fs::remove_all(path_); }
  RealHome(const RealHome&) = delete;
  RealHome& operator=(const RealHome&) = delete;

  std::string state() const { return (path_ / "state").string(); }
  ChangePlan plan() const {
    ChangePlan plan;
    plan.action = "wrapper";
    plan.subject = "/w";
    plan.files = {{(path_ / "new/lib/l.dylib").string(), std::string(10'000, 'l'), 0644},
                  {(path_ / "agents/a.plist").string(), "the new agent", 0644}};
    return plan;
  }
  /// One hash over names, modes and bytes of everything but the receipts.
  std::string hash() const {
    std::map<std::string, std::string> entries;
    for (const auto& entry : fs::recursive_directory_iterator(path_)) {
      const std::string name = entry.path().lexically_relative(path_).string();
      if (name.starts_with("state")) continue;
      std::ifstream in(entry.path(), std::ios::binary);
      entries[name] = entry.is_directory()
                          ? "/"
                          : std::string(std::istreambuf_iterator<char>(in), {}) +
                                std::to_string(static_cast<int>(entry.status().permissions()));
    }
    std::string all;
    for (const auto& [name, contents] : entries) all += name + '\0' + contents + '\0';
    return hash_of(all);
  }

 private:
  fs::path path_;
};

Result<Receipt> roll_back(FileSystem& files, const RealHome& home) {
  FixedClock clock;
  ChangeSet changes(files, clock, home.state());
  auto newest = changes.newest_applied("", "");
  if (!newest) return tl::unexpected(newest.error());
  return *newest ? changes.rollback(**newest, false) : Receipt{};
}

/// False when it came to its end before it was stopped.
template <typename Act>
bool stopped(StoppingFileSystem& files, int steps, Act act) {
  files.steps_left = steps;
  try {
    act();
  } catch (const Killed&) {
    files.steps_left = 1'000'000;
    return true;
  }
  files.steps_left = 1'000'000;
  return false;
}

TEST(RealChangeSet, SurvivesAnyInterruption) {
  FixedClock clock;
  const auto apply = [&](FileSystem& files, const RealHome& home) {
    return ChangeSet(files, clock, home.state()).apply(home.plan());
  };
  StoppingFileSystem files;
  std::string after;
  {
    const RealHome home;
    ASSERT_TRUE(apply(files, home));
    after = home.hash();
  }
  for (const bool undoing : {false, true}) {
    for (int k = 0;; k += 3) {  // each syncs the disk some fifty times
      const RealHome home;
      const std::string before = home.hash();
      if (undoing) ASSERT_TRUE(apply(files, home));
      const bool was_stopped =
          stopped(files, k, [&] { (void)(undoing ? roll_back(files, home) : apply(files, home)); });
      if (!was_stopped) break;
      // Every other time apply is what comes next.
      if (k % 2 == 1) {
        ASSERT_TRUE(apply(files, home)) << k;
        ASSERT_EQ(home.hash(), after) << k;
      }
      ASSERT_TRUE(roll_back(files, home)) << k;
      ASSERT_EQ(home.hash(), before) << k;
    }
  }
}

}  // namespace
}  // namespace metaldoctor
