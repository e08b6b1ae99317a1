#include "scanners/macho/objc.h"

#include <llvm/BinaryFormat/MachO.h>

#include <algorithm>

#include "scanners/macho/arm64_words.h"

namespace metaldoctor {
namespace macho = llvm::MachO;

namespace {

std::string_view selector_in(const Image& image, const Fixups& fixups, std::uint64_t slot) {
  const Pointer pointer = fixups.at(slot);
  if (pointer.kind != Pointer::Kind::address) return {};
  return image.string_at(pointer.address).value_or(std::string_view{});
}

std::uint32_t word_at(const Section& section, std::uint64_t offset) {
  return read_at<std::uint32_t>(section.bytes, offset).value_or(0);
}

/// adrp xR; ldr xR, [xR, #o]: the slot it loads from, 0 if the two words are something else.
std::uint64_t loaded_slot(const Section& section, std::uint64_t offset, std::uint32_t reg) {
  const std::uint32_t page = word_at(section, offset), load = word_at(section, offset + 4);
  if (!arm64::is_adrp(page) || arm64::rd(page) != reg || !arm64::is_ldr_x(load) ||
      arm64::rd(load) != reg || arm64::rn(load) != reg)
    return 0;
  return arm64::adrp_target(page, section.address + offset) + arm64::ldr_x_offset(load);
}

/// The length of the Objective-C stub at `offset`, 0 if there is none.
std::uint64_t stub_length(const Section& section, std::uint64_t offset) {
  const std::uint32_t third = word_at(section, offset + 8);
  if (arm64::is_b(third)) return 12;
  const bool fast = loaded_slot(section, offset + 8, 16) != 0 &&
                    arm64::is_br(word_at(section, offset + 16)) &&
                    arm64::rn(word_at(section, offset + 16)) == 16;
  if (!fast) return 0;
  return std::min<std::uint64_t>(32, section.bytes.size() - offset);
}

/// The slot an import stub loads; accepts the authenticated form (adrp x17; add x17; ldr x16).
std::uint64_t import_stub_slot(const Section& section, std::uint64_t offset) {
  if (const std::uint64_t slot = loaded_slot(section, offset, 16)) return slot;
  const std::uint32_t page = word_at(section, offset), add = word_at(section, offset + 4);
  if (arm64::is_adrp(page) && arm64::is_add_x(add) && arm64::rn(add) == arm64::rd(page))
    return arm64::adrp_target(page, section.address + offset) + arm64::add_x_immediate(add);
  if (arm64::is_ldr_literal_x(add) && arm64::rd(add) == 16)  // relaxed: nop; ldr x16, slot
    return arm64::ldr_literal_target(add, section.address + offset + 4);
  return 0;
}

/// jmp qword ptr [rip + displacement]
std::uint64_t x86_stub_slot(const Section& section, std::uint64_t offset) {
  constexpr std::uint16_t kJump = 0x25ff;
  if (read_at<std::uint16_t>(section.bytes, offset) != kJump) return 0;
  const auto displacement = read_at<std::int32_t>(section.bytes, offset + 2);
  if (!displacement) return 0;
  return section.address + offset + 6 + static_cast<std::uint64_t>(std::int64_t{*displacement});
}

std::string_view indirect_name(const Image& image, const Section& section, std::uint64_t index) {
  const auto symbol = image.indirect_symbol(section.reserved1 + index);
  if (!symbol || *symbol >= image.symbol_count()) return {};  // also INDIRECT_SYMBOL_LOCAL
  return image.symbol(*symbol).name;
}

}  // namespace

std::vector<SelectorSlot> selector_slots(const Image& image, const Fixups& fixups) {
  std::vector<SelectorSlot> slots;
  for (const Section& section : image.sections()) {
    if (section.name != "__objc_selrefs") continue;
    for (std::uint64_t at = 0; at + 8 <= section.bytes.size(); at += 8)
      if (const auto selector = selector_in(image, fixups, section.address + at); !selector.empty())
        slots.push_back({section.address + at, selector});
  }
  std::sort(slots.begin(), slots.end(),
            [](const auto& a, const auto& b) { return a.address < b.address; });
  return slots;
}

ObjcStubs objc_stubs(const Image& image, const Fixups& fixups) {
  ObjcStubs out;
  const Section* section = image.section("__TEXT", "__objc_stubs");
  if (!section || !image.is_arm64()) return out;
  for (std::uint64_t at = 0; at + 4 <= section->bytes.size();) {
    const std::uint64_t slot = loaded_slot(*section, at, 1);
    const std::uint64_t length = slot ? stub_length(*section, at) : 0;
    const std::string_view selector =
        length ? selector_in(image, fixups, slot) : std::string_view{};
    if (selector.empty()) {
      ++out.undecoded;
      at += length ? length : 4;
      continue;
    }
    out.stubs.push_back({section->address + at, slot, selector});
    at += length;
  }
  return out;
}

std::vector<ImportStub> import_stubs(const Image& image, const Fixups& fixups) {
  std::vector<ImportStub> stubs;
  for (const Section& section : image.sections()) {
    if (section.type != macho::S_SYMBOL_STUBS || section.reserved2 < 6) continue;
    const std::uint64_t size = section.reserved2;
    for (std::uint64_t at = 0; at + size <= section.bytes.size(); at += size) {
      std::string_view name;
      const std::uint64_t slot =
          image.is_arm64() ? import_stub_slot(section, at) : x86_stub_slot(section, at);
      if (slot) name = fixups.import_name(slot);
      if (name.empty()) name = indirect_name(image, section, at / size);
      if (!name.empty()) stubs.push_back({section.address + at, name});
    }
  }
  std::sort(stubs.begin(), stubs.end(),
            [](const auto& a, const auto& b) { return a.address < b.address; });
  return stubs;
}

std::vector<ImportSlot> import_slots(const Image& image, const Fixups& fixups) {
  std::vector<ImportSlot> slots;
  for (const Section& section : image.sections()) {
    const bool pointers = section.type == macho::S_NON_LAZY_SYMBOL_POINTERS ||
                          section.type == macho::S_LAZY_SYMBOL_POINTERS ||
                          section.name == "__got" || section.name == "__auth_got";
    if (!pointers) continue;
    for (std::uint64_t at = 0; at + 8 <= section.bytes.size(); at += 8) {
      std::string_view name = fixups.import_name(section.address + at);
      if (name.empty() && fixups.style() != Fixups::Style::chained)
        name = indirect_name(image, section, at / 8);
      if (!name.empty()) slots.push_back({section.address + at, name});
    }
  }
  return slots;
}

std::optional<std::string_view> cfstring_at(const Image& image, const Fixups& fixups,
                                            std::uint64_t address) {
  constexpr std::uint64_t kUtf16 = 0x10;  // of __CFConstantStringClassReference objects' flags
  const Section* section = image.section_at(address);
  if (!section || section->name != "__cfstring") return std::nullopt;
  const auto flags = image.value_at<std::uint64_t>(address + 8);
  const auto length = image.value_at<std::uint64_t>(address + 24);
  const Pointer text = fixups.at(address + 16);
  if (!flags || !length || text.kind != Pointer::Kind::address) return std::nullopt;
  const auto bytes = image.bytes_from(text.address);
  if ((*flags & kUtf16) || !bytes || *length > bytes->size()) return std::nullopt;
  return std::string_view(reinterpret_cast<const char*>(bytes->data()), *length);
}

}  // namespace metaldoctor
