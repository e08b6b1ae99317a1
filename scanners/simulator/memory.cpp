#include "scanners/simulator/memory.h"

#include <sys/mman.h>

#include <algorithm>

namespace metaldoctor {
namespace {

/// A block costs the host memory too: tiny ones are counted as if they were this large.
constexpr std::uint64_t bytes_a_block = 256;

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

Memory::~Memory() {
  for (const Region& region : regions_)
    if (region.owned) munmap(region.host, region.size);
}

bool Memory::add(Region region) {
  const auto at = std::ranges::lower_bound(regions_, region.address, {}, &Region::address);
  if (at != regions_.end() && at->address < region.address + region.size) return false;
  if (at != regions_.begin() && std::prev(at)->address + std::prev(at)->size > region.address)
    return false;
  regions_.insert(at, region);
  return true;
}

std::uint8_t* Memory::map_zero(std::uint64_t address, std::uint64_t size, Protection protection,
                               Region::Kind kind) {
  size = round_up(size, page);
  // Untouched pages cost nothing, so budgets can be mapped whole.
  void* host = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (host == MAP_FAILED) return nullptr;
  auto* bytes = static_cast<std::uint8_t*>(host);
  if (!add({address, size, bytes, protection, kind, true})) {
    munmap(host, size);
    return nullptr;
  }
  return bytes;
}

bool Memory::map_file(std::uint64_t address, Bytes bytes, Protection protection) {
  // The engine wants a mutable pointer; the mapping is not writable for the program.
  auto* host = const_cast<std::uint8_t*>(bytes.data());
  protection.write = false;
  return add({address, bytes.size(), host, protection, Region::Kind::image, false});
}

const Region* Memory::region(std::uint64_t address) const {
  const auto after = std::ranges::upper_bound(regions_, address, {}, &Region::address);
  if (after == regions_.begin()) return nullptr;
  const Region& found = *std::prev(after);
  return address - found.address < found.size ? &found : nullptr;
}

bool Memory::read(std::uint64_t address, std::span<std::uint8_t> out) const {
  work_ += out.size();
  while (!out.empty()) {
    const Region* from = region(address);
    if (!from || !from->protection.read) return false;
    const std::uint64_t offset = address - from->address;
    const std::size_t step = std::min<std::uint64_t>(out.size(), from->size - offset);
    std::memcpy(out.data(), from->host + offset, step);
    out = out.subspan(step);
    address += step;
  }
  return true;
}

bool Memory::write(std::uint64_t address, std::span<const std::uint8_t> bytes, bool force) {
  work_ += bytes.size();
  while (!bytes.empty()) {
    const Region* to = region(address);
    if (!to || !to->owned || !(to->protection.write || force)) return false;
    const std::uint64_t offset = address - to->address;
    const std::size_t step = std::min<std::uint64_t>(bytes.size(), to->size - offset);
    std::memcpy(to->host + offset, bytes.data(), step);
    if (!force) mark_written(address, step);
    bytes = bytes.subspan(step);
    address += step;
  }
  return true;
}

bool Memory::move(std::uint64_t to, std::uint64_t from, std::uint64_t size) {
  work_ += size;
  const Region* source = region(from);
  const Region* target = region(to);
  if (size == 0) return true;
  if (source && target && fits(source->size, from - source->address, size) &&
      fits(target->size, to - target->address, size)) {
    if (!source->protection.read || !target->owned || !target->protection.write) return false;
    std::memmove(target->host + (to - target->address), source->host + (from - source->address),
                 size);
    mark_written(to, size);
    return true;
  }
  // Across regions: the stack and heap budgets bound what can be readable here.
  std::vector<std::uint8_t> copy;
  constexpr std::uint64_t most = std::uint64_t{64} << 20;
  if (size > most) return false;
  copy.resize(size);
  return read(from, copy) && write(to, copy);
}

bool Memory::fill(std::uint64_t address, std::uint8_t value, std::uint64_t size) {
  work_ += size;
  while (size > 0) {
    const Region* to = region(address);
    if (!to || !to->owned || !to->protection.write) return false;
    const std::uint64_t offset = address - to->address;
    const std::uint64_t step = std::min(size, to->size - offset);
    std::memset(to->host + offset, value, step);
    mark_written(address, step);
    address += step;
    size -= step;
  }
  return true;
}

bool Memory::clear(std::uint64_t address, std::uint64_t size) {
  work_ += size;
  const Region* to = region(address);
  if (!to || !to->owned || !fits(to->size, address - to->address, size)) return false;
  std::memset(to->host + (address - to->address), 0, size);
  return true;
}

std::optional<std::string> Memory::cstring(std::uint64_t address, std::uint64_t limit) const {
  std::string text;
  while (text.size() <= limit) {
    const Region* from = region(address);
    if (!from || !from->protection.read) return std::nullopt;
    const std::uint64_t left = from->size - (address - from->address);
    const auto* begin = reinterpret_cast<const char*>(from->host + (address - from->address));
    if (const void* end = std::memchr(begin, 0, left)) {
      text.append(begin, static_cast<const char*>(end));
      work_ += text.size();
      if (text.size() > limit) return std::nullopt;
      return text;
    }
    if (left > limit) return std::nullopt;
    text.append(begin, left);
    address += left;
  }
  return std::nullopt;
}

void Memory::mark_written(std::uint64_t address, std::uint64_t size) {
  if (address - guest::stack < guest::stack_size) return;
  while (size > 0) {
    const std::uint64_t number = address / page;
    if (number != last_page_ || !last_marks_) {
      auto& marks = marks_[number];
      if (!marks) marks = std::make_unique<Marks>();
      last_page_ = number;
      last_marks_ = marks.get();
    }
    const std::uint64_t offset = address % page;
    const std::uint64_t step = std::min(size, page - offset);
    if (step == page)
      last_marks_->set();
    else
      for (std::uint64_t i = 0; i < step; ++i) last_marks_->set(offset + i);
    address += step;
    size -= step;
  }
}

std::vector<Memory::Span> Memory::written(std::size_t limit) const {
  std::vector<std::uint64_t> pages;
  for (const auto& [number, marks] : marks_) pages.push_back(number);
  std::ranges::sort(pages);
  std::vector<Span> spans;
  for (const std::uint64_t number : pages) {
    const Marks& marks = *marks_.at(number);
    for (std::uint64_t i = 0; i < page; ++i) {
      if (!marks[i]) continue;
      const std::uint64_t address = number * page + i;
      if (!spans.empty() && spans.back().address + spans.back().size == address)
        ++spans.back().size;
      else if (spans.size() < limit)
        spans.push_back({address, 1});
      else
        return spans;
    }
  }
  return spans;
}

std::uint64_t Heap::allocate(std::uint64_t size, std::uint64_t alignment, const std::string& site) {
  alignment = std::max<std::uint64_t>(alignment, 16);
  if (size > limit_ || alignment > limit_ || blocks_.size() > limit_ / bytes_a_block ||
      (alignment & (alignment - 1)))
    return 0;
  const std::uint64_t rounded = round_up(std::max<std::uint64_t>(size, 1), 16);
  std::uint64_t address = 0;
  auto& freed = free_[rounded];
  constexpr std::size_t tries = 8;
  for (std::size_t i = freed.size(); i-- > 0 && freed.size() - i <= tries && !address;) {
    if (freed[i] % alignment) continue;
    address = freed[i];
    freed.erase(freed.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (!address) {
    address = round_up(next_, alignment);
    if (!fits(limit_, address - guest::heap, rounded)) return 0;
    next_ = address + rounded;
    order_.push_back(address);
  }
  blocks_[address] = {size, site, ++ordinals_[site], true};
  return address;
}

bool Heap::release(std::uint64_t address) {
  const auto found = blocks_.find(address);
  if (found == blocks_.end() || !found->second.live) return false;
  found->second.live = false;
  free_[round_up(std::max<std::uint64_t>(found->second.size, 1), 16)].push_back(address);
  return true;
}

const Heap::Block* Heap::block(std::uint64_t address) const {
  const auto found = blocks_.find(address);
  return found == blocks_.end() || !found->second.live ? nullptr : &found->second;
}

std::pair<std::uint64_t, const Heap::Block*> Heap::around(std::uint64_t address) const {
  const auto after = std::ranges::upper_bound(order_, address);
  if (after == order_.begin()) return {0, nullptr};
  const std::uint64_t start = *std::prev(after);
  const Block* found = block(start);
  return found && address - start < std::max<std::uint64_t>(found->size, 1)
             ? std::pair{start, found}
             : std::pair<std::uint64_t, const Block*>{0, nullptr};
}

}  // namespace metaldoctor
