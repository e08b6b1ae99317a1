#include "shim/asked.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace metaldoctor {
namespace {

using testing::ElementsAre;

Path path(const std::string& id, std::string_view predicate) {
  Path out;
  out.id = id;
  out.predicate = *Predicate::parse(predicate);
  return out;
}

Journal journal(const std::vector<std::int64_t>& families, const char* state = "installed") {
  Journal out;
  JournalProcess& process = out.processes.emplace_back();
  process.installs.push_back({"Class", state, 1, "", ""});
  for (const std::int64_t family : families) {
    process.asked.push_back({"Class", {"supportsFamily:", {family}}, false, false, "", 0});
  }
  return out;
}

TEST(Asked, LeavesOutWhatWasNeverReached) {
  std::vector<Path> paths{path("a", "family(1007)"), path("b", "family(1008) or family(1009)"),
                          path("c", "family(1008) and family(1007)"), path("d", "env('X')"),
                          path("e", "tgmem() >= 65536")};
  const auto asked = asked_in(journal({1007}), "j");
  ASSERT_TRUE(asked);
  EXPECT_THAT(remove_unasked(paths, *asked), ElementsAre("b", "e"));
  EXPECT_EQ(paths.size(), 3u);
}

TEST(Asked, AJournalThatProvesNothingIsRefused) {
  EXPECT_EQ(asked_in({}, "j").error().code, "journal-incomplete");
  EXPECT_EQ(asked_in(journal({1007}, "waiting"), "j").error().code, "journal-incomplete");
  Journal damaged = journal({1007});
  damaged.damaged_count = 1;
  EXPECT_EQ(asked_in(damaged, "j").error().code, "journal-incomplete");
  Journal full = journal({1007});
  full.processes[0].full = true;
  EXPECT_EQ(asked_in(full, "j").error().code, "journal-full");
}

}  // namespace
}  // namespace metaldoctor
