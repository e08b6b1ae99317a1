#include "scanners/macho/function_starts.h"

#include <gtest/gtest.h>

#include "tests/unit/macho/macho_builder.h"

namespace metaldoctor {
namespace {

TEST(FunctionStarts, DecodesDeltas) {
  struct Case {
    std::vector<std::uint8_t> payload;
    std::vector<std::uint64_t> offsets;
    bool ok;
  };
  const Case cases[] = {
      {{0x10, 0x04, 0x80, 0x01, 0}, {0x10, 0x14, 0x94}, true},
      {{}, {}, true},
      {{0, 0, 0}, {}, true},
      {{0x10, 0x80}, {}, false},  // a number that does not end
      {{0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, {}, false},
  };
  for (const Case& one : cases) {
    const auto found = decode_function_starts(one.payload, "t", 0);
    EXPECT_EQ(found.has_value(), one.ok);
    if (found) EXPECT_EQ(*found, one.offsets);
  }
}

TEST(FunctionStarts, DecodesUnwindInfo) {
  testing::ByteWriter out;
  // header: version 1, no encodings, no personalities, index at 28 with 3 entries
  for (const std::uint32_t value : {1u, 28u, 0u, 28u, 0u, 28u, 3u}) out.put(value);
  // a regular page at 64, a compressed one at 88, the sentinel
  for (const std::uint32_t value : {0x100u, 64u, 0u, 0x200u, 88u, 0u, 0x300u, 0u, 0u})
    out.put(value);
  out.put(std::uint32_t{2}).put(std::uint16_t{8}).put(std::uint16_t{2});
  for (const std::uint32_t value : {0x100u, 0u, 0x140u, 0u}) out.put(value);
  out.put(std::uint32_t{3}).put(std::uint16_t{8}).put(std::uint16_t{2});
  for (const std::uint32_t value : {0x01000000u, 0x02000010u}) out.put(value);
  EXPECT_EQ(decode_unwind_info(out.bytes),
            (std::vector<std::uint64_t>{0x100, 0x140, 0x200, 0x210}));
  EXPECT_TRUE(decode_unwind_info({}).empty());
  out.bytes.resize(70);  // pages cut off
  EXPECT_TRUE(decode_unwind_info(out.bytes).empty());
}

}  // namespace
}  // namespace metaldoctor
