#include "scanners/macho/image.h"

#include <gtest/gtest.h>

#include "tests/unit/macho/macho_builder.h"

namespace metaldoctor {
namespace {

using testing::ByteWriter;
using testing::SmallImage;

template <typename T>
void poke(std::vector<std::uint8_t>& bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(T));
}

std::string read(const std::vector<std::uint8_t>& bytes) {
  const auto file = MachOFile::read(bytes, "file");
  if (!file) return file.error().where + ": " + file.error().what;
  const auto image = Image::read(file->slices().at(0));
  return image ? "ok" : image.error().where + ": " + image.error().what;
}

TEST(Image, ReadsLoadCommands) {
  SmallImage small;
  small.data = {1, 2, 3};
  const auto bytes = small.build();
  const auto file = MachOFile::read(bytes, "file");
  ASSERT_TRUE(file);
  const auto image = Image::read(file->slices().at(0));
  ASSERT_TRUE(image) << image.error().what;
  EXPECT_EQ(file->slices()[0].arch, "arm64");
  EXPECT_EQ(image->base(), small.base);
  ASSERT_EQ(image->sections().size(), 1u);
  EXPECT_EQ(image->section("__DATA", "__got")->size, 24u);
  EXPECT_EQ(image->value_at<std::uint64_t>(small.data_address + 8), 2u);
  EXPECT_FALSE(image->value_at<std::uint64_t>(small.data_address + 20));
  EXPECT_FALSE(image->value_at<std::uint64_t>(small.data_address - 8));
  EXPECT_EQ(image->section_at(small.data_address + 24), nullptr);
}

// Offsets in the built file: the header is 32 bytes, __TEXT's command 72, __DATA's 72 + 80.
constexpr std::size_t kText = 32, kData = kText + 72, kGot = kData + 72, kPart = kGot + 80 + 72;

TEST(Image, RefusesDamageWithPlaceAndExpectation) {
  struct Case {
    std::string expected;
    void (*damage)(std::vector<std::uint8_t>&);
  };
  const Case cases[] = {
      {"offset 0x10: expected at most 65536 load commands",
       [](auto& b) { poke(b, 20, 0x7fffffffu); }},
      {"found 4294967295 in", [](auto& b) { poke(b, 16, 0xffffffffu); }},
      {"offset 0x20: expected load command 0 of 4", [](auto& b) { poke(b, kText + 4, 4u); }},
      {"expected load command 0 of 4", [](auto& b) { poke(b, kText + 4, 0x10000000u); }},
      {"expected the segment inside", [](auto& b) { poke(b, kData + 48, 0xffffffffffffull); }},
      {"inside the address space", [](auto& b) { poke(b, kData + 24, ~0ull - 4); }},
      {"expected 4000000 section headers", [](auto& b) { poke(b, kData + 64, 4000000u); }},
      {"section __DATA,__got inside", [](auto& b) { poke(b, kGot + 40, 0x123456789ull); }},
      {"section inside the address space", [](auto& b) { poke(b, kGot + 32, ~0ull); }},
      {"chained fixups inside", [](auto& b) { poke(b, kPart + 12, 0x7fffffffu); }},
  };
  for (const Case& one : cases) {
    SmallImage small;
    small.data = {0, 0};
    auto bytes = small.build();
    one.damage(bytes);
    const std::string found = read(bytes);
    EXPECT_NE(found.find(one.expected), std::string::npos) << one.expected << " | " << found;
  }
}

TEST(MachOFile, SaysWhatItIsNot) {
  EXPECT_NE(read({}).find("neither magic number"), std::string::npos);
  EXPECT_NE(read({'#', '!', '/', 'b', 'i', 'n'}).find("neither magic number"), std::string::npos);
  EXPECT_NE(read({0xce, 0xfa, 0xed, 0xfe, 0, 0, 0, 0}).find("32-bit"), std::string::npos);
  EXPECT_NE(read({0xcf, 0xfa, 0xed, 0xfe, 0, 0, 0, 0}).find("a 32-byte header, found 8"),
            std::string::npos);
  // A Java class file shares the fat magic.
  EXPECT_NE(read({0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 61}).find("neither magic number"),
            std::string::npos);
}

TEST(MachOFile, FatSlicesAndTheirBounds) {
  const auto thin = SmallImage{}.build();
  const auto be = [](ByteWriter& out, std::uint32_t value) { out.put(__builtin_bswap32(value)); };
  ByteWriter fat;
  for (const std::uint32_t value :
       {0xcafebabeu, 1u, 0x0100000cu, 0u, 0x4000u, static_cast<std::uint32_t>(thin.size()), 14u})
    be(fat, value);
  fat.pad_to(0x4000).append(thin);
  const auto file = MachOFile::read(fat.bytes, "file");
  ASSERT_TRUE(file) << file.error().what;
  EXPECT_EQ(file->container(), Container::fat);
  EXPECT_EQ(file->slices()[0].offset, 0x4000u);
  EXPECT_EQ(file->slices()[0].where, "file (arm64)");
  fat.bytes.pop_back();
  EXPECT_NE(read(fat.bytes).find("expected slice 0 inside"), std::string::npos);
}

std::string member(std::string name, const std::vector<std::uint8_t>& body) {
  name.resize(16, ' ');
  std::string size = std::to_string(body.size());
  size.resize(10, ' ');
  std::string out = name + std::string(32, '0') + size + "`\n";
  out.append(body.begin(), body.end());
  if (out.size() & 1) out += '\n';
  return out;
}

TEST(MachOFile, ArchiveMembers) {
  const auto thin = SmallImage{}.build();
  std::vector<std::uint8_t> named = {'l', 'o', 'n', 'g', '.', 'o', 0, 0};
  named.insert(named.end(), thin.begin(), thin.end());
  std::string archive = "!<arch>\n" + member("__.SYMDEF", {1, 2, 3}) + member("a.o", thin) +
                        member("#1/8", named) + member("notes", {'x'});
  const std::vector<std::uint8_t> bytes(archive.begin(), archive.end());
  const auto file = MachOFile::read(bytes, "lib.a");
  ASSERT_TRUE(file) << file.error().what;
  ASSERT_EQ(file->slices().size(), 2u);
  EXPECT_EQ(file->slices()[0].member, "a.o");
  EXPECT_EQ(file->slices()[1].member, "long.o");
  EXPECT_EQ(file->slices()[1].where, "lib.a(long.o) (arm64)");
  EXPECT_TRUE(Image::read(file->slices()[1]));

  std::string cut = archive.substr(0, 100);
  EXPECT_FALSE(MachOFile::read(std::vector<std::uint8_t>(cut.begin(), cut.end()), "lib.a"));
}

}  // namespace
}  // namespace metaldoctor
