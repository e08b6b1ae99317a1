#include "scanners/macho/fixups.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/unit/macho/macho_builder.h"

namespace metaldoctor {
namespace {

using testing::ByteWriter;
using testing::ChainedPayload;
using testing::SmallImage;

/// "slot=target slot=import+addend ...", or the error's code and text.
std::string fixups_of(const std::vector<std::uint8_t>& bytes) {
  const auto file = MachOFile::read(bytes, "t");
  if (!file) return file.error().code + ": " + file.error().what;
  const auto image = Image::read(file->slices().at(0));
  if (!image) return image.error().code + ": " + image.error().what;
  const auto fixups = Fixups::read(*image);
  if (!fixups) return fixups.error().code + ": " + fixups.error().what;
  std::string out;
  const auto walked = fixups->walk([&](std::uint64_t slot, const Pointer& pointer) {
    out += fmt::format("{}{:x}=", out.empty() ? "" : " ", slot);
    if (pointer.kind == Pointer::Kind::address)
      out += fmt::format("{:x}", pointer.address);
    else
      out += fmt::format("{}+{}", fixups->imports()[pointer.import].name, pointer.addend);
    if (pointer.authenticated) out += "!";
    // What is decoded without the chain must agree.
    EXPECT_EQ(fixups->at(slot).kind, pointer.kind);
    EXPECT_EQ(fixups->at(slot).address, pointer.address);
  });
  return walked ? out : walked.error().code + ": " + walked.error().what;
}

std::vector<std::uint8_t> chained(const ChainedPayload& payload, std::vector<std::uint64_t> data) {
  SmallImage image;
  image.data = std::move(data);
  image.linkedit = payload.build();
  return image.build();
}

std::vector<std::uint8_t> import1(std::uint32_t name_offset, std::uint32_t library = 1) {
  return ByteWriter().put((name_offset << 9) | library).bytes;
}

TEST(ChainedFixups, PointerFormats) {
  constexpr std::uint64_t kBind = std::uint64_t{1} << 63;
  constexpr std::uint64_t kArm64eBind = std::uint64_t{1} << 62, kAuth = std::uint64_t{1} << 63;
  struct Case {
    std::uint16_t format;
    std::vector<std::uint64_t> data;
    std::string expected;
  };
  const Case cases[] = {
      // next = 2 strides of 4 bytes, then a bind with addend 5
      {6, {0x10 | (2ull << 51), kBind | (5ull << 24)}, "100004000=100000010 100004008=_f+5"},
      {2, {0x100000010 | (2ull << 51), kBind}, "100004000=100000010 100004008=_f+0"},
      // the top byte of the target
      {6, {0x10 | (0x80ull << 36)}, "100004000=8000000100000010"},
      // arm64e: strides of 8 bytes, addend of 19 bits with a sign
      {1,
       {0x100000010 | (1ull << 51), kArm64eBind | (0x7ffffull << 32)},
       "100004000=100000010 100004008=_f+-1"},
      {9, {0x20 | (1ull << 51), kArm64eBind | (3ull << 32)}, "100004000=100000020 100004008=_f+3"},
      {12, {0x20 | (1ull << 51), kAuth | 0x30}, "100004000=100000020 100004008=100000030!"},
      {12, {kAuth | kArm64eBind}, "100004000=_f+0!"},
  };
  for (const Case& one : cases) {
    ChainedPayload payload;
    payload.format = one.format;
    payload.imports = import1(0);
    payload.imports_count = 1;
    payload.names = std::string("_f\0", 3);
    EXPECT_EQ(fixups_of(chained(payload, one.data)), one.expected) << "format " << one.format;
  }
}

TEST(ChainedFixups, ImportFormats) {
  constexpr std::uint64_t kBind = std::uint64_t{1} << 63;
  ChainedPayload payload;
  payload.names = std::string("x\0_second\0", 10);
  payload.imports_count = 1;
  payload.imports_format = 2;
  payload.imports = ByteWriter().put(std::uint32_t{(2 << 9) | 0xfe}).put(std::int32_t{-8}).bytes;
  EXPECT_EQ(fixups_of(chained(payload, {kBind})), "100004000=_second+-8");
  payload.imports_format = 3;
  payload.imports =
      ByteWriter().put(std::uint64_t{2} << 32 | 0xfffe).put(std::uint64_t{0x1000}).bytes;
  EXPECT_EQ(fixups_of(chained(payload, {kBind | (1ull << 24)})), "100004000=_second+4097");
}

TEST(ChainedFixups, RefusesDamage) {
  constexpr std::uint64_t kBind = std::uint64_t{1} << 63;
  struct Case {
    std::string what;
    void (*damage)(ChainedPayload&);
    std::vector<std::uint64_t> data;
  };
  const Case cases[] = {
      {"page 0 and the 0x4000 bytes", [](ChainedPayload& p) { p.page_start = 0x3ffc; }, {}},
      {"first fixup of page 0 below", [](ChainedPayload& p) { p.page_start = 0x4001; }, {0}},
      {"pages of 0x1000 or 0x4000", [](ChainedPayload& p) { p.page_size = 0x123; }, {0}},
      {"pointer format 1, 2, 6, 9 or 12", [](ChainedPayload& p) { p.format = 7; }, {0}},
      {"at offset 0x4000 from the image's base",
       [](ChainedPayload& p) { p.segment_offset = 0; },
       {0}},
      {"expected 65535 page starts", [](ChainedPayload& p) { p.page_count = 0xffff; }, {0}},
      {"at most 3 segments", [](ChainedPayload& p) { p.segment_count = 4; }, {0}},
      {"the starts of 16777216 segments",
       [](ChainedPayload& p) { p.segment_count = 1 << 24; },
       {0}},
      {"imports format 1, 2 or 3", [](ChainedPayload& p) { p.imports_format = 0; }, {0}},
      {"expected 99999 imports", [](ChainedPayload& p) { p.imports_count = 99999; }, {0}},
      {"the name of import 0",
       [](ChainedPayload& p) { p.imports = import1(500), p.imports_count = 1; },
       {0}},
      {"expected an import below 0", [](ChainedPayload&) {}, {kBind}},
  };
  for (const Case& one : cases) {
    ChainedPayload payload;
    one.damage(payload);
    EXPECT_NE(fixups_of(chained(payload, one.data)).find(one.what), std::string::npos)
        << one.what << " | " << fixups_of(chained(payload, one.data));
  }
}

TEST(ChainedFixups, OverlappingNamesAreBounded) {
  // 30,000 imports that all name one string of 60 KB would cost 1.8 GB of reading.
  ChainedPayload payload;
  payload.imports_count = 30'000;
  for (std::uint32_t i = 0; i < payload.imports_count; ++i) {
    const auto entry = import1(0);
    payload.imports.insert(payload.imports.end(), entry.begin(), entry.end());
  }
  payload.names = std::string(60'000, 'a') + '\0';
  EXPECT_NE(fixups_of(chained(payload, {0})).find("do not overlap"), std::string::npos);
}

std::vector<std::uint8_t> opcodes(const std::vector<std::uint8_t>& rebase,
                                  const std::vector<std::uint8_t>& bind,
                                  std::vector<std::uint64_t> data,
                                  const std::vector<std::uint8_t>& lazy = {}) {
  SmallImage image;
  image.data = std::move(data);
  ByteWriter info;
  const auto at = static_cast<std::uint32_t>(SmallImage::kLinkeditOffset);
  const auto size = [](const auto& part) { return static_cast<std::uint32_t>(part.size()); };
  info.put(at).put(size(rebase)).put(at + size(rebase)).put(size(bind)).put(std::uint64_t{0});
  info.put(at + size(rebase) + size(bind)).put(size(lazy)).put(std::uint64_t{0});
  image.dyld_info = info.bytes;
  image.linkedit = rebase;
  image.linkedit.insert(image.linkedit.end(), bind.begin(), bind.end());
  image.linkedit.insert(image.linkedit.end(), lazy.begin(), lazy.end());
  return image.build();
}

TEST(DyldOpcodes, RebasesAndBinds) {
  const std::vector<std::uint64_t> data = {0x100000100, 0x100000200, 0, 0x100000300, 0, 0};
  // segment 1 offset 0, two times; skip 8; once
  EXPECT_EQ(fixups_of(opcodes({0x11, 0x21, 0x00, 0x52, 0x41, 0x51, 0x00}, {}, data)),
            "100004000=100000100 100004008=100000200 100004018=100000300");
  // dylib 1, "_f", pointer, segment 1 offset 0x20, bind, bind + 0
  EXPECT_EQ(
      fixups_of(opcodes({}, {0x11, 0x40, '_', 'f', 0, 0x51, 0x71, 0x20, 0x90, 0x90, 0x00}, data)),
      "100004020=_f+0 100004028=_f+0");
  // two times, 8 bytes apart, addend -1
  EXPECT_EQ(fixups_of(opcodes(
                {}, {0x11, 0x40, '_', 'g', 0, 0x60, 0x7f, 0x71, 0x00, 0xc0, 0x02, 0x08}, data)),
            "100004000=_g+-1 100004010=_g+-1");
  // lazy binds have a DONE between symbols
  EXPECT_EQ(fixups_of(opcodes({}, {}, data,
                              {0x71, 0x00, 0x11, 0x40, '_', 'a', 0, 0x90, 0x00, 0x71, 0x08, 0x11,
                               0x40, '_', 'b', 0, 0x90, 0x00})),
            "100004000=_a+0 100004008=_b+0");
}

TEST(DyldOpcodes, RefusesDamage) {
  struct Case {
    std::string what;
    std::vector<std::uint8_t> rebase, bind;
  };
  const Case cases[] = {
      {"a segment to be set", {0x51}, {}},
      {"a segment below 3, found 9", {0x29, 0x00, 0x51}, {}},
      {"inside segment __DATA", {0x21, 0x00, 0x60, 0xff, 0xff, 0xff, 0xff, 0x7f}, {}},
      {"inside segment __DATA", {0x21, 0x80, 0x80, 0x02, 0x51}, {}},
      // a skip that wraps round would visit one slot for ever
      {"inside segment __DATA",
       {0x21, 0x00, 0x80, 0xff, 0xff, 0x7f, 0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0x01},
       {}},
      {"in a section", {0x21, 0x80, 0x40, 0x51}, {}},
      {"a rebase opcode", {0xf0}, {}},
      {"end inside their part", {0x21}, {}},
      {"end inside their part", {}, {0x40, '_', 'f'}},
      {"a bind opcode", {}, {0xe0}},
      {"plain bind opcodes", {}, {0xd0, 0x10}},
  };
  for (const Case& one : cases) {
    const std::string found = fixups_of(opcodes(one.rebase, one.bind, {0, 0, 0}));
    EXPECT_NE(found.find(one.what), std::string::npos) << one.what << " | " << found;
  }
}

}  // namespace
}  // namespace metaldoctor
