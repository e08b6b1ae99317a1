// The first byte picks the encoding; the rest is the linkedit part and the pointers it fixes up.
#include <cstdint>
#include <cstring>

#include "scanners/macho/fixups.h"
#include "tests/unit/macho/macho_builder.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace metaldoctor;
  if (size < 66) return 0;
  testing::SmallImage image;
  image.data.resize(8);
  std::memcpy(image.data.data(), data + 1, 64);
  image.linkedit.assign(data + 65, data + size);
  if (data[0] & 1) {
    // A third each for rebase, bind and lazy bind opcodes.
    const auto part = static_cast<std::uint32_t>(image.linkedit.size() / 3);
    const std::uint32_t at = testing::SmallImage::kLinkeditOffset;
    testing::ByteWriter info;
    info.put(at).put(part).put(at + part).put(part).put(std::uint64_t{0});
    info.put(at + 2 * part).put(part).put(std::uint64_t{0});
    image.dyld_info = info.bytes;
  }
  const auto bytes = image.build();
  const auto file = MachOFile::read(bytes, "fuzz");
  const auto read = Image::read(file->slices().at(0));
  if (!read) return 0;
  const auto fixups = Fixups::read(*read);
  if (fixups)
    (void)fixups->walk([&](std::uint64_t slot, const Pointer&) { (void)fixups->at(slot); });
  return 0;
}
