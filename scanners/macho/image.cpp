#include "scanners/macho/image.h"

#include <fmt/format.h>
#include <llvm/BinaryFormat/MachO.h>

#include <algorithm>

namespace metaldoctor {
namespace macho = llvm::MachO;

bool Section::is_code() const {
  return (attributes & (macho::S_ATTR_PURE_INSTRUCTIONS | macho::S_ATTR_SOME_INSTRUCTIONS)) != 0;
}

bool Symbol::is_defined_in_section() const {
  return !(type & macho::N_STAB) && (type & macho::N_TYPE) == macho::N_SECT;
}

bool Symbol::is_undefined() const {
  return !(type & macho::N_STAB) && (type & macho::N_TYPE) == macho::N_UNDF;
}

bool Image::is_object() const {
  return file_type_ == macho::MH_OBJECT;
}
bool Image::is_x86_64() const {
  return slice_.cpu_type == macho::CPU_TYPE_X86_64;
}

bool Image::is_arm64() const {
  return slice_.cpu_type == macho::CPU_TYPE_ARM64;
}

const Section* Image::section(std::string_view segment, std::string_view name) const {
  for (const Section& section : sections_)
    if (section.segment == segment && section.name == name) return &section;
  return nullptr;
}

const Segment* Image::segment(std::string_view name) const {
  for (const Segment& segment : segments_)
    if (segment.name == name) return &segment;
  return nullptr;
}

const Section* Image::section_at(std::uint64_t vm) const {
  auto after = std::upper_bound(
      by_address_.begin(), by_address_.end(), vm,
      [&](std::uint64_t address, std::uint32_t i) { return address < sections_[i].address; });
  // Damaged files overlap sections: look back over empty and short ones, but not far.
  for (int tries = 0; after != by_address_.begin() && tries < 4; ++tries) {
    const Section& section = sections_[*--after];
    if (section.contains(vm)) return &section;
  }
  return nullptr;
}

std::optional<Bytes> Image::bytes_from(std::uint64_t vm) const {
  const Section* section = section_at(vm);
  if (!section || vm - section->address >= section->bytes.size()) return std::nullopt;
  return section->bytes.subspan(vm - section->address);
}

std::optional<std::string_view> Image::string_at(std::uint64_t vm) const {
  const auto bytes = bytes_from(vm);
  return bytes ? cstring_at(*bytes, 0, kMaxText) : std::nullopt;
}

bool Image::maps(std::uint64_t vm) const {
  for (const Segment& segment : segments_)
    if (segment.max_protection && vm >= segment.vm_address &&
        vm - segment.vm_address < segment.vm_size)
      return true;
  return false;
}

std::string Image::uuid_text() const {
  if (!uuid_) return {};
  std::string text;
  for (std::size_t i = 0; i < uuid_->size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02X}", (*uuid_)[i]);
  }
  return text;
}

std::uint32_t Image::symbol_count() const {
  return static_cast<std::uint32_t>(linkedit_.symbols.size / sizeof(macho::nlist_64));
}

Symbol Image::symbol(std::uint32_t index) const {
  Symbol symbol;
  const auto entry = read_at<macho::nlist_64>(part(linkedit_.symbols),
                                              std::uint64_t{index} * sizeof(macho::nlist_64));
  if (!entry) return symbol;
  symbol.name =
      cstring_at(part(linkedit_.strings), entry->n_strx, kMaxText).value_or(std::string_view{});
  symbol.value = entry->n_value;
  symbol.type = entry->n_type;
  symbol.section = entry->n_sect;
  symbol.description = static_cast<std::uint16_t>(entry->n_desc);
  return symbol;
}

std::optional<std::uint32_t> Image::indirect_symbol(std::uint64_t index) const {
  if (index > linkedit_.indirect_symbols.size / 4) return std::nullopt;
  return read_at<std::uint32_t>(part(linkedit_.indirect_symbols), index * 4);
}

}  // namespace metaldoctor
