#include "tables/os_version.h"

#include <gtest/gtest.h>

namespace metaldoctor {
namespace {

TEST(OsVersion, Parses) {
  EXPECT_EQ(parse_os_version("26.5.2 (25F84)"), (OsVersion{26, 5, 2}));
  EXPECT_EQ(parse_os_version("26.5.2"), (OsVersion{26, 5, 2}));
  EXPECT_EQ(parse_os_version("15.0"), (OsVersion{15, 0, 0}));
  EXPECT_EQ(parse_os_version("15"), (OsVersion{15, 0, 0}));
  EXPECT_EQ(parse_os_version("10.15.4"), (OsVersion{10, 15, 4}));
  EXPECT_EQ(parse_os_version("macOS 14.5"), (OsVersion{14, 5, 0}));
  EXPECT_EQ(parse_os_version("Version 26.5.2 (Build 25F84)"), (OsVersion{26, 5, 2}));
  EXPECT_EQ(true_macos({16, 2, 0}), (OsVersion{26, 2, 0}));
  EXPECT_EQ(true_macos({15, 2, 0}), (OsVersion{15, 2, 0}));
}

TEST(OsVersion, RefusesWhatIsNone) {
  for (const std::string_view text :
       {"", "x", "26.", "26.5.", "26.5.2.", "26.5.2.1", "-1.2", "26.-5", "26.5beta", " 26.5",
        "26..5", "macOS", "macOS x", "26.x", "99999999999", "26.123456"}) {
    EXPECT_EQ(parse_os_version(text), std::nullopt) << text;
  }
}

TEST(OsVersion, PrintsAndOrders) {
  EXPECT_EQ(to_string(OsVersion{26, 5, 2}), "26.5.2");
  EXPECT_EQ(to_string(OsVersion{26, 5, 0}), "26.5");
  EXPECT_EQ(to_string(OsVersion{26, 0, 0}), "26.0");
  EXPECT_LT((OsVersion{15, 7, 5}), (OsVersion{26, 0, 0}));
  EXPECT_LT((OsVersion{26, 5, 0}), (OsVersion{26, 5, 2}));
}

TEST(OsKnowledge, ReachesByWhatIsKnown) {
  using Reach = OsKnowledge::Reach;
  const OsVersion metal4{26, 0, 0};
  const OsVersion newest{27, 0, 0};
  EXPECT_EQ((OsKnowledge{OsVersion{26, 5, 2}, {}, newest}.reaches(metal4)), Reach::yes);
  EXPECT_EQ((OsKnowledge{OsVersion{26, 0, 0}, {}, newest}.reaches(metal4)), Reach::yes);
  EXPECT_EQ((OsKnowledge{OsVersion{15, 7, 0}, {}, newest}.reaches(metal4)), Reach::no);
  EXPECT_EQ((OsKnowledge{{}, OsVersion{26, 0, 0}, newest}.reaches(metal4)), Reach::yes);
  EXPECT_EQ((OsKnowledge{{}, OsVersion{15, 0, 0}, newest}.reaches(metal4)), Reach::assumed_yes);
  EXPECT_EQ((OsKnowledge{{}, {}, newest}.reaches(metal4)), Reach::assumed_yes);
  // What is known for certain beats the bound and the assumption.
  EXPECT_EQ((OsKnowledge{OsVersion{15, 0, 0}, OsVersion{26, 0, 0}, newest}.reaches(metal4)),
            Reach::no);
}

}  // namespace
}  // namespace metaldoctor
