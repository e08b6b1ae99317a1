#pragma once
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "scanners/macho/image.h"

namespace metaldoctor {

/// A symbol that dyld binds from another image.
struct Import {
  std::string_view name;  ///< "_objc_msgSend"
  int library = 0;        ///< 1-based index of the load commands' libraries, or a special ordinal
  bool weak = false;
};

/// What dyld writes into a pointer slot.
struct Pointer {
  enum class Kind { none, address, import } kind = Kind::none;
  std::uint64_t address = 0;   ///< kind address: unslid virtual address, top byte as stored
  std::uint32_t import = 0;    ///< kind import: index into Fixups::imports()
  std::int64_t addend = 0;     ///< kind import
  bool authenticated = false;  ///< arm64e: dyld signs the pointer
};

/// The fixups of an image, in either encoding: LC_DYLD_CHAINED_FIXUPS (pointer formats 1, 2, 6, 9
/// and 12, import formats 1, 2 and 3) or LC_DYLD_INFO opcodes. The rules are those of dyld's
/// mach_o/ChainedFixups.cpp and mach_o/Bind/RebaseOpcodes.cpp.
class Fixups {
 public:
  enum class Style { none, chained, opcodes };

  /// Reads headers, imports and (opcodes) all binds. `image` must outlive the result.
  static Result<Fixups> read(const Image& image);

  Style style() const { return style_; }
  const std::vector<Import>& imports() const { return imports_; }
  /// The pointer format of the chained segments, 0 if none.
  std::uint16_t pointer_format() const;

  /// Decodes one slot that is known to hold a pointer, without following the chain to it.
  Pointer at(std::uint64_t slot) const;
  /// The import bound at a slot; empty if none.
  std::string_view import_name(std::uint64_t slot) const;

  using Visitor = std::function<void(std::uint64_t slot, const Pointer&)>;
  /// Every fixup in file order. An error means that dyld would refuse the image.
  Result<void> walk(const Visitor& visit) const;

 private:
  friend class ChainedReader;
  friend class OpcodeReader;
  /// One segment's chains. `page_starts` lies in the payload and was checked.
  struct Chain {
    std::uint64_t address = 0;  ///< of the segment
    Bytes bytes;                ///< of the segment
    Bytes page_starts;          ///< u16 each
    std::uint32_t page_size = 0;
    std::uint16_t format = 0;
    std::uint64_t payload_offset = 0;  ///< in the slice, for messages
  };
  struct Bind {
    std::uint64_t slot = 0;
    std::uint32_t import = 0;
    std::int64_t addend = 0;
  };

  Result<void> walk_chain(const Chain& chain, const Visitor& visit) const;
  Result<void> walk_page(const Chain& chain, std::size_t page, std::uint16_t start,
                         const Visitor& visit) const;
  Pointer decode(std::uint16_t format, std::uint64_t raw) const;

  const Image* image_ = nullptr;
  Style style_ = Style::none;
  std::vector<Import> imports_;
  std::vector<std::int64_t> import_addends_;  ///< chained import formats 2 and 3
  std::vector<Chain> chains_;
  std::vector<Bind> binds_;  ///< sorted by slot
};

}  // namespace metaldoctor
