#include "scanners/macho/chained_fixups.h"

#include <fmt/format.h>
#include <llvm/BinaryFormat/MachO.h>

#include <array>

namespace metaldoctor {
namespace macho = llvm::MachO;

namespace {

constexpr std::string_view kCode = "fixups-malformed";
constexpr std::uint16_t kPageStartNone = 0xffff;
constexpr std::uint16_t kPageStartMulti = 0x8000;  // 32-bit images only

constexpr std::uint64_t bits(std::uint64_t raw, unsigned low, unsigned count) {
  return (raw >> low) & ((std::uint64_t{1} << count) - 1);
}

constexpr std::int64_t signed_bits(std::uint64_t raw, unsigned low, unsigned count) {
  const std::uint64_t value = bits(raw, low, count);
  const std::uint64_t sign = std::uint64_t{1} << (count - 1);
  return static_cast<std::int64_t>((value ^ sign) - sign);
}

/// dyld's ChainedFixups::PointerFormat, as data.
struct PointerFormat {
  std::uint16_t id;
  std::uint8_t stride;
  bool arm64e;
  bool target_is_offset;  ///< from the image's base; else a virtual address
  std::uint8_t ordinal_bits;
};
constexpr std::array kFormats = {
    PointerFormat{1, 8, true, false, 16},   // ARM64E
    PointerFormat{2, 4, false, false, 24},  // 64
    PointerFormat{6, 4, false, true, 24},   // 64_OFFSET
    PointerFormat{9, 8, true, true, 16},    // ARM64E_USERLAND
    PointerFormat{12, 8, true, true, 24},   // ARM64E_USERLAND24
};

const PointerFormat* format_of(std::uint16_t id) {
  for (const PointerFormat& format : kFormats)
    if (format.id == id) return &format;
  return nullptr;
}

std::uint64_t next_of(const PointerFormat& format, std::uint64_t raw) {
  return format.arm64e ? bits(raw, 51, 11) : bits(raw, 51, 12);
}

/// dyld_chained_import, _addend and _addend64.
struct ImportFormat {
  std::uint32_t id;
  std::uint8_t size;
};
constexpr std::array kImportFormats = {ImportFormat{1, 4}, ImportFormat{2, 8}, ImportFormat{3, 16}};

}  // namespace

ChainedReader::ChainedReader(const Image& image, Fixups& out)
    : image_(image),
      out_(out),
      payload_(image.part(image.linkedit().chained_fixups)),
      payload_offset_(image.linkedit().chained_fixups.offset) {}

tl::unexpected<Diagnostic> ChainedReader::bad(std::uint64_t offset, std::string what) const {
  return malformed(kCode, image_.where(), payload_offset_ + offset, std::move(what));
}

Result<void> ChainedReader::read() {
  out_.style_ = Fixups::Style::chained;
  const auto header = read_at<macho::dyld_chained_fixups_header>(payload_, 0);
  if (!header)
    return bad(0, fmt::format("expected a chained fixups header, found {} bytes", payload_.size()));
  if (header->fixups_version != 0 || header->symbols_format != 0)
    return fail(Fault::input, "macho-unsupported", image_.where(),
                fmt::format("expected chained fixups version 0 with plain symbol names, found "
                            "version {} with symbol format {}",
                            header->fixups_version, header->symbols_format));
  if (auto ok = imports(*header); !ok) return ok;
  return starts(header->starts_offset);
}

Result<void> ChainedReader::imports(const macho::dyld_chained_fixups_header& header) {
  const ImportFormat* format = nullptr;
  for (const ImportFormat& row : kImportFormats)
    if (row.id == header.imports_format) format = &row;
  if (!format)
    return bad(20,
               fmt::format("expected imports format 1, 2 or 3, found {}", header.imports_format));
  const auto table =
      slice(payload_, header.imports_offset, std::uint64_t{header.imports_count} * format->size);
  if (!table)
    return bad(16, fmt::format("expected {} imports at {:#x} inside {:#x} bytes of fixups",
                               header.imports_count, header.imports_offset, payload_.size()));
  if (header.symbols_offset > payload_.size())
    return bad(12, fmt::format("expected import names inside {:#x} bytes of fixups, found {:#x}",
                               payload_.size(), header.symbols_offset));
  const Bytes names = payload_.subspan(header.symbols_offset);
  // Names may share a tail, but a table of long names that all overlap is an attack on our time.
  std::uint64_t budget = names.size() * 4 + 65'536;
  out_.imports_.reserve(header.imports_count);
  if (format->id != 1) out_.import_addends_.reserve(header.imports_count);
  for (std::uint32_t i = 0; i < header.imports_count; ++i) {
    const RawImport raw = import(format->id, *table, std::uint64_t{i} * format->size);
    const auto name = cstring_at(names, raw.name_offset);
    const std::uint64_t at = header.imports_offset + std::uint64_t{i} * format->size;
    if (!name)
      return bad(at,
                 fmt::format("expected the name of import {} inside {:#x} bytes of names, found "
                             "offset {:#x}",
                             i, names.size(), raw.name_offset));
    if (name->size() + 1 > budget) return bad(at, "expected import names that do not overlap");
    budget -= name->size() + 1;
    out_.imports_.push_back({*name, raw.library, raw.weak});
    if (format->id != 1) out_.import_addends_.push_back(raw.addend);
  }
  return {};
}

ChainedReader::RawImport ChainedReader::import(std::uint32_t format, Bytes table,
                                               std::uint64_t at) {
  if (format == 3) {
    const std::uint64_t raw = read_at<std::uint64_t>(table, at).value_or(0);
    return {bits(raw, 32, 32), static_cast<int>(signed_bits(raw, 0, 16)), bits(raw, 16, 1) != 0,
            read_at<std::int64_t>(table, at + 8).value_or(0)};
  }
  const std::uint32_t raw = read_at<std::uint32_t>(table, at).value_or(0);
  return {bits(raw, 9, 23), static_cast<int>(signed_bits(raw, 0, 8)), bits(raw, 8, 1) != 0,
          format == 2 ? read_at<std::int32_t>(table, at + 4).value_or(0) : 0};
}

Result<void> ChainedReader::starts(std::uint64_t offset) {
  const auto count = read_at<std::uint32_t>(payload_, offset);
  if (!count || !fits(payload_.size(), offset + 4, std::uint64_t{*count} * 4))
    return bad(offset,
               fmt::format("expected the starts of {} segments inside {:#x} bytes of fixups",
                           count.value_or(0), payload_.size()));
  if (*count > image_.segments().size())
    return bad(offset, fmt::format("expected starts for at most {} segments, found {}",
                                   image_.segments().size(), *count));
  for (std::uint32_t i = 0; i < *count; ++i) {
    const auto at = read_at<std::uint32_t>(payload_, offset + 4 + std::uint64_t{i} * 4).value_or(0);
    if (at == 0) continue;  // no fixups in this segment
    if (auto ok = segment(i, offset + at); !ok) return ok;
  }
  return {};
}

Result<void> ChainedReader::segment(std::uint32_t index, std::uint64_t at) {
  // dyld_chained_starts_in_segment without its array.
  struct Starts {
    std::uint32_t size;
    std::uint16_t page_size, pointer_format;
    std::uint64_t segment_offset;
    std::uint32_t max_valid_pointer;
    std::uint16_t page_count;
  };
  constexpr std::uint64_t kHeader = 22;  // Starts is padded to 24
  const auto raw = slice(payload_, at, kHeader);
  if (!raw) return bad(at, fmt::format("expected the page starts of segment {}", index));
  Starts starts{};
  std::memcpy(&starts, raw->data(), kHeader);
  const Segment& segment = image_.segments()[index];
  const auto pages = slice(payload_, at + kHeader, std::uint64_t{starts.page_count} * 2);
  if (!pages)
    return bad(at, fmt::format("expected {} page starts of segment {} inside {:#x} bytes of fixups",
                               starts.page_count, segment.name, payload_.size()));
  if (starts.page_size != 0x1000 && starts.page_size != 0x4000)
    return bad(at + 4, fmt::format("expected pages of 0x1000 or 0x4000 bytes in segment {}, found "
                                   "{:#x}",
                                   segment.name, starts.page_size));
  if (!format_of(starts.pointer_format))
    return fail(Fault::input, "macho-unsupported", image_.where(),
                fmt::format("expected chained pointer format 1, 2, 6, 9 or 12 in segment {}, found "
                            "{}",
                            segment.name, starts.pointer_format));
  if (starts.segment_offset != segment.vm_address - image_.base())
    return bad(at + 8, fmt::format("expected segment {} at offset {:#x} from the image's base, "
                                   "found {:#x}",
                                   segment.name, segment.vm_address - image_.base(),
                                   starts.segment_offset));
  Fixups::Chain chain;
  chain.address = segment.vm_address;
  chain.bytes = image_.part({segment.file_offset, segment.file_size});
  chain.page_starts = *pages;
  chain.page_size = starts.page_size;
  chain.format = starts.pointer_format;
  chain.payload_offset = payload_offset_ + at;
  out_.chains_.push_back(chain);
  return {};
}

Pointer Fixups::decode(std::uint16_t format_id, std::uint64_t raw) const {
  const PointerFormat* format = format_of(format_id);
  Pointer pointer;
  if (!format) return pointer;
  const bool bind = format->arm64e ? bits(raw, 62, 1) : bits(raw, 63, 1);
  pointer.authenticated = format->arm64e && bits(raw, 63, 1);
  if (bind) {
    pointer.import = static_cast<std::uint32_t>(bits(raw, 0, format->ordinal_bits));
    if (pointer.import >= imports_.size()) return pointer;
    pointer.kind = Pointer::Kind::import;
    if (!format->arm64e) pointer.addend = static_cast<std::int64_t>(bits(raw, 24, 8));
    if (format->arm64e && !pointer.authenticated) pointer.addend = signed_bits(raw, 32, 19);
    if (pointer.import < import_addends_.size()) pointer.addend += import_addends_[pointer.import];
    return pointer;
  }
  pointer.kind = Pointer::Kind::address;
  if (pointer.authenticated) {
    pointer.address = image_->base() + bits(raw, 0, 32);  // always an offset
    return pointer;
  }
  const std::uint64_t target = format->arm64e ? bits(raw, 0, 43) : bits(raw, 0, 36);
  const std::uint64_t high8 = format->arm64e ? bits(raw, 43, 8) : bits(raw, 36, 8);
  pointer.address = (target + (format->target_is_offset ? image_->base() : 0)) | (high8 << 56);
  return pointer;
}

Result<void> Fixups::walk_chain(const Chain& chain, const Visitor& visit) const {
  for (std::size_t page = 0; page * 2 < chain.page_starts.size(); ++page) {
    const auto start = read_at<std::uint16_t>(chain.page_starts, page * 2).value_or(kPageStartNone);
    if (start == kPageStartNone) continue;
    if (start >= chain.page_size || (start & kPageStartMulti))
      return malformed(kCode, image_->where(), chain.payload_offset,
                       fmt::format("expected the first fixup of page {} below {:#x}, found {:#x}",
                                   page, chain.page_size, start));
    if (auto ok = walk_page(chain, page, start, visit); !ok) return ok;
  }
  return {};
}

Result<void> Fixups::walk_page(const Chain& chain, std::size_t page, std::uint16_t start,
                               const Visitor& visit) const {
  const PointerFormat& format = *format_of(chain.format);
  const std::uint64_t page_offset = std::uint64_t{page} * chain.page_size;
  for (std::uint64_t in_page = start;;) {
    const std::uint64_t offset = page_offset + in_page;
    const auto raw = read_at<std::uint64_t>(chain.bytes, offset);
    if (!raw || in_page + 8 > chain.page_size)
      return malformed(kCode, image_->where(), chain.payload_offset,
                       fmt::format("expected a fixup inside page {} and the {:#x} bytes of its "
                                   "segment, found one at {:#x}",
                                   page, chain.bytes.size(), offset));
    const Pointer pointer = decode(chain.format, *raw);
    if (pointer.kind == Pointer::Kind::none)
      return malformed(kCode, image_->where(), chain.payload_offset,
                       fmt::format("expected an import below {} at {:#x}, found {}",
                                   imports_.size(), chain.address + offset, pointer.import));
    visit(chain.address + offset, pointer);
    const std::uint64_t next = next_of(format, *raw);
    if (next == 0) return {};
    in_page += next * format.stride;
  }
}

}  // namespace metaldoctor
