#include "scanners/simulator/image_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "scanners/macho/exports.h"

namespace metaldoctor {
namespace {

constexpr std::uint64_t guest_page = 0x4000;
constexpr std::uint64_t max_span = std::uint64_t{2} << 30;
constexpr std::size_t max_images = 64;
constexpr std::uint32_t read_only_after_fixups = 0x10;  // SG_READ_ONLY
constexpr std::uint64_t export_reexport = 0x8;          // EXPORT_SYMBOL_FLAGS_REEXPORT
constexpr std::uint32_t mh_execute = 2, mh_dylib = 6, mh_bundle = 8;

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

tl::unexpected<Diagnostic> unusable(const std::string& where, std::string what) {
  return fail(Fault::input, "simulator-image", where, std::move(what));
}

bool is_mapped(const Segment& segment) {
  return segment.vm_size != 0 && (segment.init_protection != 0 || segment.file_size != 0);
}

Result<void> measure(SimLoaded& loaded, const SimBudget& budget) {
  const Image& image = *loaded.image;
  std::uint64_t low = ~std::uint64_t{0}, high = 0, zero_fill = 0;
  for (const Segment& segment : image.segments()) {
    if (!is_mapped(segment)) continue;
    if (segment.vm_address % Memory::page)
      return unusable(image.where(),
                      fmt::format("segment {} does not start at a page", segment.name));
    if (segment.vm_address > ~std::uint64_t{0} - segment.vm_size - guest_page)
      return unusable(image.where(), fmt::format("segment {} wraps around", segment.name));
    low = std::min(low, segment.vm_address);
    high = std::max(high, segment.vm_address + segment.vm_size);
    zero_fill += segment.vm_size - std::min(segment.vm_size, segment.file_size);
    if (zero_fill > budget.memory)
      return unusable(image.where(), fmt::format("zero-filled segments exceed the memory budget of "
                                                 "{} bytes",
                                                 budget.memory));
  }
  if (high <= low || high - low > max_span)
    return unusable(image.where(), fmt::format("the segments span {} bytes, at most {} are taken",
                                               high <= low ? 0 : high - low, max_span));
  loaded.lowest = low;
  loaded.span = round_up(high - low, guest_page);
  return {};
}

Result<void> collect(SimLoaded& loaded) {
  auto fixups = Fixups::read(*loaded.image);
  if (!fixups) return tl::unexpected(fixups.error());
  loaded.fixups = std::make_unique<Fixups>(*std::move(fixups));
  auto walked = loaded.fixups->walk([&](std::uint64_t slot, const Pointer& pointer) {
    if (pointer.kind == Pointer::Kind::address)
      loaded.all_fixups.push_back({slot, pointer.address, -1});
    if (pointer.kind == Pointer::Kind::import)
      loaded.all_fixups.push_back({slot, static_cast<std::uint64_t>(pointer.addend),
                                   static_cast<std::int32_t>(pointer.import)});
  });
  if (!walked) return walked;
  loaded.selectors = selector_slots(*loaded.image, *loaded.fixups);
  return walk_exports(*loaded.image, [&](const Export& symbol) {
    if (symbol.flags & export_reexport)
      loaded.reexports.emplace(symbol.name,
                               symbol.import_name.empty() ? symbol.name : symbol.import_name);
    else
      loaded.exports.emplace(symbol.name, symbol.address);
  });
}

bool wants(const Slice& slice, std::string_view arch) {
  return slice.member.empty() && slice.arch == arch;
}

Protection protection_of(const Segment& segment) {
  return {(segment.init_protection & 1) != 0,
          (segment.init_protection & 2) != 0 && !(segment.flags & read_only_after_fixups),
          (segment.init_protection & 4) != 0};
}

/// Segments that dyld or the program writes to; everything else is shared with the file.
bool needs_copy(const SimLoaded& loaded, const Segment& segment) {
  if (segment.init_protection & 2) return true;
  const auto inside = [&](std::uint64_t slot) {
    return slot - segment.vm_address < segment.vm_size;
  };
  return std::ranges::any_of(loaded.all_fixups, inside, &SimLoaded::Fixup::slot) ||
         std::ranges::any_of(loaded.selectors, inside, &SelectorSlot::address);
}

bool map_segment(Memory& memory, const SimLoaded& loaded, const Segment& segment) {
  const Protection protection = protection_of(segment);
  const std::uint64_t address = loaded.address(segment.vm_address);
  const std::uint64_t file_size = std::min(segment.file_size, segment.vm_size);
  const Bytes bytes = loaded.image->slice().bytes.subspan(segment.file_offset, file_size);
  const std::uint64_t shared =
      needs_copy(loaded, segment) ? 0 : file_size / Memory::page * Memory::page;
  if (shared && !memory.map_file(address, bytes.first(shared), protection)) return false;
  if (shared == segment.vm_size) return true;
  std::uint8_t* rest =
      memory.map_zero(address + shared, segment.vm_size - shared, protection, Region::Kind::image);
  if (!rest) return false;
  std::copy(bytes.begin() + static_cast<std::ptrdiff_t>(shared), bytes.end(), rest);
  return true;
}

}  // namespace

std::string_view leaf_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

bool is_system_library(std::string_view path) {
  return path.starts_with("/usr/lib/") || path.starts_with("/System/");
}

Result<ImageSet> ImageSet::read(const std::vector<SimImage>& images, std::string arch,
                                const SimBudget& budget) {
  ImageSet set;
  if (images.empty()) return unusable("request", "there is no image to load");
  if (images.size() > max_images)
    return unusable("request", fmt::format("more than {} images", max_images));
  set.arch_ = std::move(arch);
  for (const SimImage& image : images)
    if (auto added = set.add(image, budget); !added) return tl::unexpected(added.error());
  return set;
}

Result<void> ImageSet::add(const SimImage& image, const SimBudget& budget) {
  SimLoaded loaded;
  loaded.path = image.path;
  loaded.leaf = leaf_name(image.path);
  auto file = MachOFile::read(image.bytes, image.path);
  if (!file) return tl::unexpected(file.error());
  loaded.file = std::make_unique<MachOFile>(*std::move(file));
  const auto& slices = loaded.file->slices();
  if (arch_.empty()) {
    const bool arm = std::ranges::any_of(slices, [](const Slice& s) { return wants(s, "arm64"); });
    arch_ = arm ? "arm64" : "x86_64";
  }
  auto slice = std::ranges::find_if(slices, [&](const Slice& s) { return wants(s, arch_); });
  // arm64e code runs on the same model; its pointers are not signed there.
  if (slice == slices.end() && arch_ == "arm64")
    slice = std::ranges::find_if(slices, [](const Slice& s) { return wants(s, "arm64e"); });
  if (slice == slices.end()) return unusable(image.path, fmt::format("has no {} slice", arch_));
  auto parsed = Image::read(*slice);
  if (!parsed) return tl::unexpected(parsed.error());
  loaded.image = std::make_unique<Image>(*std::move(parsed));
  const std::uint32_t type = loaded.image->file_type();
  if (type != mh_execute && type != mh_dylib && type != mh_bundle)
    return unusable(loaded.image->where(), fmt::format("file type {} is not loaded by dyld", type));
  if (loaded.image->encrypted()) return unusable(loaded.image->where(), "the text is encrypted");
  if (auto measured = measure(loaded, budget); !measured) return measured;
  if (auto collected = collect(loaded); !collected) return collected;
  loaded.slide = next_ - loaded.lowest;
  next_ += loaded.span + 16 * guest_page;
  images_.push_back(std::move(loaded));
  return {};
}

const SimLoaded* ImageSet::at(std::uint64_t slid) const {
  for (const SimLoaded& loaded : images_)
    if (loaded.contains(slid)) return &loaded;
  return nullptr;
}

const SimLoaded* ImageSet::find(std::string_view name) const {
  const std::string_view leaf = leaf_name(name);
  for (const SimLoaded& loaded : images_)
    if (loaded.path == name) return &loaded;
  for (const SimLoaded& loaded : images_)
    if (loaded.leaf == leaf || leaf_name(loaded.image->install_name()) == leaf) return &loaded;
  return nullptr;
}

std::vector<std::string> ImageSet::missing() const {
  std::set<std::string> leaves;
  for (const SimLoaded& loaded : images_)
    for (const Dylib& dylib : loaded.image->dylibs())
      if (!is_system_library(dylib.path) && !find(dylib.path))
        leaves.emplace(leaf_name(dylib.path));
  return {leaves.begin(), leaves.end()};
}

bool ImageSet::links(std::string_view leaf) const {
  for (const SimLoaded& loaded : images_)
    for (const Dylib& dylib : loaded.image->dylibs())
      if (leaf_name(dylib.path) == leaf) return true;
  return false;
}

Result<void> ImageSet::map(Memory& memory) const {
  for (const SimLoaded& loaded : images_)
    for (const Segment& segment : loaded.image->segments())
      if (is_mapped(segment) && !map_segment(memory, loaded, segment))
        return unusable(loaded.image->where(),
                        fmt::format("segment {} overlaps another", segment.name));
  return {};
}

Result<void> ImageSet::fix_up(Memory& memory, const Resolve& resolve) const {
  for (const SimLoaded& loaded : images_) {
    const auto& imports = loaded.fixups->imports();
    std::vector<std::optional<std::uint64_t>> resolved(imports.size());
    for (const SimLoaded::Fixup& fixup : loaded.all_fixups) {
      std::uint64_t value = loaded.address(fixup.target);
      if (fixup.import >= 0) {
        auto& target = resolved[static_cast<std::size_t>(fixup.import)];
        if (!target) target = resolve(loaded, imports[static_cast<std::size_t>(fixup.import)]);
        value = *target ? *target + fixup.target : 0;
      }
      if (!memory.store(loaded.address(fixup.slot), value, /*force=*/true))
        return unusable(loaded.image->where(),
                        fmt::format("a fixup at {:#x} is in no segment", fixup.slot));
    }
  }
  return {};
}

std::optional<std::uint64_t> ImageSet::exported(std::string_view name,
                                                const SimLoaded* only) const {
  const std::string key(name);
  for (const SimLoaded& loaded : images_) {
    if (only && &loaded != only) continue;
    if (const auto found = loaded.exports.find(key); found != loaded.exports.end())
      return loaded.address(found->second);
    const auto elsewhere = loaded.reexports.find(key);
    if (elsewhere == loaded.reexports.end()) continue;
    // One step is enough for what linkers write, and cannot go in circles.
    for (const SimLoaded& other : images_) {
      const auto found = other.exports.find(elsewhere->second);
      if (found != other.exports.end()) return other.address(found->second);
    }
  }
  return std::nullopt;
}

const SimLoaded* ImageSet::library_of(const SimLoaded& image, const Import& import) const {
  const auto& dylibs = image.image->dylibs();
  if (import.library == 0) return &image;
  if (import.library < 1 || static_cast<std::size_t>(import.library) > dylibs.size())
    return nullptr;
  const std::string_view path = dylibs[static_cast<std::size_t>(import.library) - 1].path;
  return is_system_library(path) ? nullptr : find(path);
}

std::optional<std::uint64_t> ImageSet::symbol(std::string_view name, const SimLoaded* only) const {
  if (const auto found = exported(name, only)) return found;
  for (const SimLoaded& loaded : images_) {
    if (only && &loaded != only) continue;
    for (std::uint32_t i = 0; i < loaded.image->symbol_count(); ++i) {
      const Symbol symbol = loaded.image->symbol(i);
      if (symbol.name == name && symbol.is_defined_in_section())
        return loaded.address(symbol.value);
    }
  }
  return std::nullopt;
}

std::string ImageSet::name_of(std::uint64_t slid) const {
  const SimLoaded* loaded = at(slid);
  if (!loaded) return {};
  const std::uint64_t from_header = slid - loaded->address(loaded->image->base());
  return fmt::format("{}+{:#x}", loaded->leaf, from_header);
}

}  // namespace metaldoctor
