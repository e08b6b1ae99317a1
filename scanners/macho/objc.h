#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "scanners/macho/fixups.h"
#include "scanners/macho/image.h"

namespace metaldoctor {

/// A slot of __objc_selrefs: a pointer that the runtime replaces by the unique selector.
struct SelectorSlot {
  std::uint64_t address = 0;
  std::string_view selector;
};
/// Sorted by address. Slots whose target is no string are left out.
std::vector<SelectorSlot> selector_slots(const Image& image, const Fixups& fixups);

/// A stub of __TEXT,__objc_stubs: loads a selector and jumps to objc_msgSend. Stub symbols vanish
/// when an image is stripped and prove nothing, so the instructions are decoded: ld's fast form
/// (32 bytes, adrp/ldr x1, adrp/ldr x16, br x16) and small form (12 bytes, adrp/ldr x1, b).
struct ObjcStub {
  std::uint64_t address = 0;
  std::uint64_t slot = 0;  ///< selref slot
  std::string_view selector;
};
struct ObjcStubs {
  std::vector<ObjcStub> stubs;  ///< sorted by address
  std::size_t undecoded = 0;    ///< words of the section that belong to no known form
};
ObjcStubs objc_stubs(const Image& image, const Fixups& fixups);

/// A linker stub that jumps to an imported function.
struct ImportStub {
  std::uint64_t address = 0;
  std::string_view name;  ///< "_MTLCreateSystemDefaultDevice"
};
/// From the symbol stub sections (__stubs, __auth_stubs), sorted by address. The name comes from
/// the slot that the code loads, else from the indirect symbol table.
std::vector<ImportStub> import_stubs(const Image& image, const Fixups& fixups);

/// A pointer slot (__got, __auth_got, __la_symbol_ptr, __nl_symbol_ptr) and its import.
struct ImportSlot {
  std::uint64_t address = 0;
  std::string_view name;
};
std::vector<ImportSlot> import_slots(const Image& image, const Fixups& fixups);

/// The text of a constant NSString (__cfstring); none for UTF-16 ones.
std::optional<std::string_view> cfstring_at(const Image& image, const Fixups& fixups,
                                            std::uint64_t address);

}  // namespace metaldoctor
