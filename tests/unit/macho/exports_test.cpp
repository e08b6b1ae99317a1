#include "scanners/macho/exports.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/unit/macho/macho_builder.h"

namespace metaldoctor {
namespace {

std::string exports_of(const std::vector<std::uint8_t>& trie) {
  testing::SmallImage small;
  small.linkedit_command = 0x80000033;  // LC_DYLD_EXPORTS_TRIE
  small.linkedit = trie;
  const auto bytes = small.build();
  const auto file = MachOFile::read(bytes, "t");
  if (!file) return file.error().what;
  const auto image = Image::read(file->slices().at(0));
  if (!image) return image.error().what;
  std::string out;
  const auto walked = walk_exports(*image, [&](const Export& symbol) {
    out += fmt::format("{}{}={:x}", out.empty() ? "" : " ", symbol.name, symbol.address);
    if (!symbol.import_name.empty())
      out += fmt::format("->{}:{}", symbol.other, symbol.import_name);
  });
  return walked ? out : walked.error().what;
}

TEST(Exports, WalksTheTrie) {
  // root: "_" -> 5; node 5: children "a" -> 13 (address 0x10), "b" -> 17 (re-export)
  const std::vector<std::uint8_t> trie = {0,  1, '_', 0,    5, 0, 2, 'a', 0,   13,  'b', 0,
                                          17, 2, 0,   0x10, 0, 5, 8, 2,   'x', 'y', 0,   0};
  EXPECT_EQ(exports_of(trie), "_a=100000010 _b=0->2:xy");
  EXPECT_EQ(exports_of({0, 0}), "");
}

TEST(Exports, RefusesDamage) {
  // the root is its own child
  EXPECT_NE(exports_of({0, 1, 'a', 0, 0}).find("not reached before"), std::string::npos);
  EXPECT_NE(exports_of({0, 1, 'a', 0, 99}).find("inside the 0x5 bytes"), std::string::npos);
  EXPECT_NE(exports_of({0, 1, 'a', 'b'}).find("an edge"), std::string::npos);
  EXPECT_NE(exports_of({9, 0}).find("symbol information"), std::string::npos);
  EXPECT_NE(exports_of({1, 0, 0}).find("symbol information inside"), std::string::npos);
}

TEST(Exports, OverlappingNodesAreBounded) {
  // Each byte of the long edge is a node of its own whose edges are the rest of it.
  std::vector<std::uint8_t> trie = {0, 255};
  for (int i = 0; i < 20'000; ++i) trie.push_back(static_cast<std::uint8_t>(1 + i % 100));
  trie.push_back(0);
  EXPECT_FALSE(exports_of(trie).empty());
}

}  // namespace
}  // namespace metaldoctor
