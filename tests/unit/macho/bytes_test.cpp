#include "scanners/macho/bytes.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace metaldoctor {
namespace {

TEST(Bytes, RangesNeverOverflow) {
  EXPECT_TRUE(fits(8, 0, 8));
  EXPECT_TRUE(fits(8, 8, 0));
  EXPECT_FALSE(fits(8, 9, 0));
  EXPECT_FALSE(fits(8, 4, 5));
  EXPECT_FALSE(fits(8, UINT64_MAX, 2));
  EXPECT_FALSE(fits(8, 2, UINT64_MAX));
}

TEST(Bytes, ReadsStayInside) {
  const std::array<std::uint8_t, 5> raw = {1, 2, 3, 4, 5};
  EXPECT_EQ(read_at<std::uint32_t>(raw, 1), 0x05040302u);
  EXPECT_EQ(read_be<std::uint32_t>(raw, 0), 0x01020304u);
  EXPECT_FALSE(read_at<std::uint32_t>(raw, 2));
  EXPECT_FALSE(read_at<std::uint64_t>(raw, 0));
}

TEST(Bytes, StringsEndInside) {
  const std::array<std::uint8_t, 4> raw = {'a', 'b', 0, 'c'};
  EXPECT_EQ(cstring_at(raw, 0), "ab");
  EXPECT_EQ(cstring_at(raw, 2), "");
  EXPECT_FALSE(cstring_at(raw, 3));
  EXPECT_FALSE(cstring_at(raw, 4));
}

TEST(Cursor, Leb128) {
  struct Case {
    std::vector<std::uint8_t> raw;
    std::uint64_t value;
    bool ok;
  };
  const Case cases[] = {
      {{0}, 0, true},
      {{0x7f}, 127, true},
      {{0x80, 1}, 128, true},
      {{0xe5, 0x8e, 0x26}, 624485, true},
      {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, UINT64_MAX, true},
      {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02}, 0, false},
      {{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00}, 0, false},
      {{0x80}, 0, false},
      {{}, 0, false},
  };
  for (const Case& one : cases) {
    Cursor cursor(one.raw);
    EXPECT_EQ(cursor.uleb(), one.value);
    EXPECT_EQ(cursor.ok(), one.ok);
  }
  const std::array<std::uint8_t, 2> minus = {0x80, 0x7f};
  Cursor cursor(minus);
  EXPECT_EQ(cursor.sleb(), -128);
}

TEST(Cursor, FailsOnceAndForAll) {
  const std::array<std::uint8_t, 3> raw = {'a', 0, 7};
  Cursor cursor(raw);
  EXPECT_EQ(cursor.cstring(), "a");
  EXPECT_EQ(cursor.cstring(), "");
  EXPECT_FALSE(cursor.ok());
  EXPECT_EQ(cursor.u8(), 0);
}

}  // namespace
}  // namespace metaldoctor
