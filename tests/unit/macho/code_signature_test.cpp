#include "scanners/macho/code_signature.h"

#include <gtest/gtest.h>

#include "tests/unit/macho/macho_builder.h"

namespace metaldoctor {
namespace {

using testing::ByteWriter;

void be(ByteWriter& out, std::uint32_t value) {
  out.put(__builtin_bswap32(value));
}

std::vector<std::uint8_t> code_directory(std::uint32_t flags, std::string_view team) {
  ByteWriter out;
  const std::uint32_t team_at = team.empty() ? 0 : 56;
  for (const std::uint32_t value : {0xfade0c02u, 0u, 0x20400u, flags, 0u, 52u}) be(out, value);
  out.pad_to(36).put(std::uint8_t{32}).put(std::uint8_t{2});
  out.pad_to(48);
  be(out, team_at);
  out.text("app").text(team);
  const auto size = __builtin_bswap32(static_cast<std::uint32_t>(out.bytes.size()));
  std::memcpy(out.bytes.data() + 4, &size, 4);
  return out.bytes;
}

std::vector<std::uint8_t> blob(std::uint32_t magic, std::string_view text) {
  ByteWriter out;
  be(out, magic);
  be(out, static_cast<std::uint32_t>(8 + text.size()));
  out.bytes.insert(out.bytes.end(), text.begin(), text.end());
  return out.bytes;
}

std::vector<std::uint8_t> signature(const std::vector<std::vector<std::uint8_t>>& parts) {
  ByteWriter index, bodies;
  const auto header = static_cast<std::uint32_t>(12 + parts.size() * 8);
  for (const auto& part : parts) {
    be(index, 0);
    be(index, header + static_cast<std::uint32_t>(bodies.bytes.size()));
    bodies.append(part);
  }
  ByteWriter out;
  be(out, 0xfade0cc0);
  be(out, header + static_cast<std::uint32_t>(bodies.bytes.size()));
  be(out, static_cast<std::uint32_t>(parts.size()));
  return out.append(index.bytes).append(bodies.bytes).bytes;
}

TEST(CodeSignature, ReadsWhatDecidesInjection) {
  const auto bytes = signature({code_directory(0x10000, "TEAM123456"), blob(0xfade7171, "<plist/>"),
                                blob(0xfade7172, "der"), blob(0xfade0b01, "cms")});
  const auto found = parse_code_signature(bytes, "t", 0);
  ASSERT_TRUE(found) << found.error().what;
  EXPECT_TRUE(found->is_hardened());
  EXPECT_FALSE(found->is_adhoc());
  EXPECT_EQ(found->identifier, "app");
  EXPECT_EQ(found->team_id, "TEAM123456");
  EXPECT_EQ(found->hash_type, 2);
  EXPECT_EQ(found->entitlements, "<plist/>");
  EXPECT_EQ(found->entitlements_der.size(), 3u);
  EXPECT_TRUE(found->has_cms);
}

TEST(CodeSignature, AdHocHasNoTeam) {
  const auto bytes = signature({code_directory(0x20002, ""), blob(0xfade0b01, "")});
  const auto found = parse_code_signature(bytes, "t", 0);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->is_adhoc());
  EXPECT_TRUE(found->is_linker_signed());
  EXPECT_TRUE(found->team_id.empty());
  EXPECT_FALSE(found->has_cms);
}

TEST(CodeSignature, RefusesDamageAtEveryLength) {
  const auto whole = signature({code_directory(0, "T"), blob(0xfade7171, "x")});
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(parse_code_signature(Bytes(whole).first(size), "t", 0)) << size;
  auto no_directory = signature({blob(0xfade7171, "x")});
  EXPECT_FALSE(parse_code_signature(no_directory, "t", 0));
}

}  // namespace
}  // namespace metaldoctor
