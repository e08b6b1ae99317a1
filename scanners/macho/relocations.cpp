#include "scanners/macho/relocations.h"

#include <fmt/format.h>
#include <llvm/BinaryFormat/MachO.h>

#include <algorithm>
#include <tuple>

namespace metaldoctor {
namespace macho = llvm::MachO;

Result<std::vector<Relocation>> read_relocations(const Image& image, const Section& section) {
  std::vector<Relocation> out;
  const auto table = slice(image.slice().bytes, section.relocation_offset,
                           std::uint64_t{section.relocation_count} * 8);
  if (!table)
    return malformed("macho-malformed", image.where(), section.relocation_offset,
                     fmt::format("expected {} relocations of section {} inside the slice",
                                 section.relocation_count, section.name));
  out.reserve(section.relocation_count);
  std::int64_t addend = 0;
  for (std::uint64_t at = 0; at < table->size(); at += 8) {
    const auto offset = *read_at<std::uint32_t>(*table, at);
    const auto info = *read_at<std::uint32_t>(*table, at + 4);
    const std::uint32_t index = info & 0xffffff;
    const bool is_extern = (info >> 27) & 1;
    const auto type = static_cast<std::uint8_t>(info >> 28);
    if (type == macho::ARM64_RELOC_ADDEND) {
      addend = static_cast<std::int32_t>(index << 8) >> 8;
      continue;
    }
    Relocation relocation;
    relocation.address = section.address + offset;
    relocation.type = type;
    if (is_extern && index < image.symbol_count()) {
      const Symbol symbol = image.symbol(index);
      relocation.symbol = symbol.name;
      relocation.undefined = symbol.is_undefined();
      relocation.target = relocation.undefined ? 0 : symbol.value + addend;
    }
    addend = 0;
    out.push_back(relocation);
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
    return std::tie(a.address, a.type) < std::tie(b.address, b.type);
  });
  return out;
}

}  // namespace metaldoctor
