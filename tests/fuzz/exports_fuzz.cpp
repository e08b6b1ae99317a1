#include <cstdint>

#include "scanners/macho/exports.h"
#include "tests/unit/macho/macho_builder.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace metaldoctor;
  testing::SmallImage image;
  image.linkedit_command = 0x80000033;  // LC_DYLD_EXPORTS_TRIE
  image.linkedit.assign(data, data + size);
  const auto bytes = image.build();
  const auto file = MachOFile::read(bytes, "fuzz");
  std::size_t names = 0;
  if (const auto read = Image::read(file->slices().at(0)))
    (void)walk_exports(*read, [&](const Export& symbol) { names += symbol.name.size(); });
  return names == SIZE_MAX;
}
