#include "scanners/macho/function_starts.h"

#include <fmt/format.h>
#include <llvm/BinaryFormat/MachO.h>

#include <algorithm>

#include "scanners/macho/exports.h"

namespace metaldoctor {
namespace macho = llvm::MachO;

Result<std::vector<std::uint64_t>> decode_function_starts(Bytes payload, const std::string& where,
                                                          std::uint64_t payload_offset) {
  std::vector<std::uint64_t> offsets;
  offsets.reserve(payload.size() / 2);
  Cursor cursor(payload);
  std::uint64_t offset = 0;
  while (!cursor.at_end()) {
    const std::uint64_t delta = cursor.uleb();
    if (delta == 0) break;  // padding
    offset += delta;
    if (!cursor.ok() || offset < delta) break;
    offsets.push_back(offset);
  }
  if (!cursor.ok() || (!offsets.empty() && offset < offsets.front()))
    return malformed("function-starts-malformed", where, payload_offset + cursor.offset(),
                     "expected increasing offsets as LEB128 numbers that end inside their part");
  return offsets;
}

namespace {

// <mach-o/compact_unwind_encoding.h>; not in LLVM's header.
struct UnwindHeader {
  std::uint32_t version, encodings_offset, encodings_count, personalities_offset,
      personalities_count, index_offset, index_count;
};
struct UnwindIndex {
  std::uint32_t function_offset, page_offset, lsda_offset;
};
constexpr std::uint32_t kUnwindRegularPage = 2;

}  // namespace

std::vector<std::uint64_t> decode_unwind_info(Bytes section) {
  std::vector<std::uint64_t> offsets;
  const auto header = read_at<UnwindHeader>(section, 0);
  if (!header || header->version != 1) return offsets;
  const std::size_t limit = section.size();  // pages cannot hold more entries than bytes
  for (std::uint64_t i = 0; i + 1 < header->index_count; ++i) {
    const auto index =
        read_at<UnwindIndex>(section, header->index_offset + i * sizeof(UnwindIndex));
    if (!index || offsets.size() > limit) break;
    const std::uint64_t page = index->page_offset;
    const auto kind = read_at<std::uint32_t>(section, page);
    const auto entries = read_at<std::uint16_t>(section, page + 4);
    const auto count = read_at<std::uint16_t>(section, page + 6);
    if (page == 0 || !kind || !entries || !count) continue;
    for (std::uint64_t e = 0; e < *count; ++e) {
      const bool regular = *kind == kUnwindRegularPage;
      const auto entry = read_at<std::uint32_t>(section, page + *entries + e * (regular ? 8 : 4));
      if (!entry) break;
      offsets.push_back(regular ? *entry : index->function_offset + (*entry & 0xffffff));
    }
  }
  return offsets;
}

namespace {

bool in_code(const Image& image, std::uint64_t vm) {
  const Section* section = image.section_at(vm);
  return section && section->is_code();
}

void add_symbols(const Image& image, std::vector<std::uint64_t>& out) {
  const Bytes table = image.part(image.linkedit().symbols);
  for (std::uint64_t at = 0; at + sizeof(macho::nlist_64) <= table.size();
       at += sizeof(macho::nlist_64)) {
    const auto entry = *read_at<macho::nlist_64>(table, at);
    if ((entry.n_type & macho::N_STAB) || (entry.n_type & macho::N_TYPE) != macho::N_SECT) continue;
    if (in_code(image, entry.n_value)) out.push_back(entry.n_value);
  }
}

void add_call_targets(const Image& image, std::vector<std::uint64_t>& out) {
  if (!image.is_arm64()) return;
  for (const Section& section : image.sections()) {
    if (!section.is_code()) continue;
    for (std::uint64_t at = 0; at + 4 <= section.bytes.size(); at += 4) {
      const auto word = *read_at<std::uint32_t>(section.bytes, at);
      if ((word & 0xfc000000) != 0x94000000) continue;
      const auto distance = static_cast<std::int64_t>(static_cast<std::int32_t>(word << 6) >> 4);
      const std::uint64_t target = section.address + at + distance;
      if (section.contains(target)) out.push_back(target);
    }
  }
}

void sort_unique(std::vector<std::uint64_t>& addresses) {
  if (!std::is_sorted(addresses.begin(), addresses.end()))
    std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
}

}  // namespace

Result<FunctionStarts> read_function_starts(const Image& image) {
  FunctionStarts starts;
  auto& addresses = starts.addresses;
  const Range range = image.linkedit().function_starts;
  auto offsets = decode_function_starts(image.part(range), image.where(), range.offset);
  if (!offsets) return tl::unexpected(offsets.error());
  if (!offsets->empty()) {
    starts.source = FunctionStarts::Source::function_starts;
    addresses = std::move(*offsets);
    for (std::uint64_t& address : addresses) address += image.base();
  }
  if (addresses.empty()) add_symbols(image, addresses);
  if (addresses.empty())
    if (const Section* unwind = image.section("__TEXT", "__unwind_info")) {
      starts.source = FunctionStarts::Source::unwind_info;
      for (const std::uint64_t offset : decode_unwind_info(unwind->bytes))
        if (in_code(image, image.base() + offset)) addresses.push_back(image.base() + offset);
    }
  if (addresses.empty()) {
    starts.source = FunctionStarts::Source::calls;
    add_call_targets(image, addresses);
  }
  sort_unique(addresses);
  for (const Section& section : image.sections()) {
    if (!section.is_code() || !section.size) continue;
    const auto at = std::lower_bound(addresses.begin(), addresses.end(), section.address);
    if (at == addresses.end() || *at != section.address) addresses.insert(at, section.address);
  }
  return starts;
}

std::pair<std::uint64_t, std::uint64_t> FunctionStarts::around(const Image& image,
                                                               std::uint64_t vm) const {
  const Section* section = image.section_at(vm);
  if (!section || !section->is_code()) return {0, 0};
  const auto next = std::upper_bound(addresses.begin(), addresses.end(), vm);
  const std::uint64_t limit = section->address + section->size;
  const std::uint64_t end = next == addresses.end() ? limit : std::min(*next, limit);
  const std::uint64_t begin = next == addresses.begin() ? section->address : *(next - 1);
  return {std::max(begin, section->address), end};
}

namespace {

constexpr std::size_t kMaxName = 4096;

/// Local assembler labels name no function.
bool is_noise(std::string_view name) {
  return name.empty() || name.starts_with("ltmp") || name.starts_with("l_");
}

}  // namespace

std::vector<std::string> function_names(const Image& image,
                                        std::span<const std::uint64_t> addresses) {
  std::vector<std::string> names(addresses.size());
  std::size_t missing = addresses.size();
  const auto put = [&](std::uint64_t address, std::string_view name, bool prefer) {
    const auto found = std::lower_bound(addresses.begin(), addresses.end(), address);
    if (found == addresses.end() || *found != address || is_noise(name)) return;
    std::string& slot = names[found - addresses.begin()];
    if (slot.empty()) --missing;
    if (slot.empty() || prefer) slot = name;
  };
  const Bytes table = image.part(image.linkedit().symbols);
  for (std::uint32_t i = 0; i < image.symbol_count() && !addresses.empty(); ++i) {
    // Look at the value first: most symbols are not asked for, and names cost a cache miss.
    const auto entry = *read_at<macho::nlist_64>(table, std::uint64_t{i} * sizeof(macho::nlist_64));
    if ((entry.n_type & macho::N_STAB) || (entry.n_type & macho::N_TYPE) != macho::N_SECT) continue;
    if (!std::binary_search(addresses.begin(), addresses.end(), entry.n_value)) continue;
    const auto strings = image.part(image.linkedit().strings);
    const auto known = std::lower_bound(addresses.begin(), addresses.end(), entry.n_value);
    if (!names[known - addresses.begin()].empty() && !(entry.n_type & macho::N_EXT)) continue;
    put(entry.n_value, cstring_at(strings, entry.n_strx, kMaxName).value_or(std::string_view{}),
        entry.n_type & macho::N_EXT);
  }
  // A damaged trie was reported where it matters, or names nothing here.
  if (missing)
    (void)walk_exports(image, [&](const Export& symbol) {
      if (symbol.address) put(symbol.address, symbol.name, false);
    });
  return names;
}

}  // namespace metaldoctor
