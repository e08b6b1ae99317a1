#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "scanners/macho/image.h"

namespace metaldoctor {

/// What an object file's instruction or pointer refers to once it is linked.
struct Relocation {
  std::uint64_t address = 0;  ///< of the instruction or pointer
  std::uint8_t type = 0;      ///< ARM64_RELOC_...
  std::string_view symbol;    ///< "_objc_msgSend$supportsFamily:"; empty when it has no name
  std::uint64_t target = 0;   ///< address of a defined symbol plus addend; 0 if undefined
  bool undefined = false;     ///< the symbol is bound by the linker
};

/// The relocations of one section of an MH_OBJECT (arm64), sorted by address.
Result<std::vector<Relocation>> read_relocations(const Image& image, const Section& section);

}  // namespace metaldoctor
