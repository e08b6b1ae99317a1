#pragma once
#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "scanners/macho/bytes.h"

namespace metaldoctor {

// Where things lie in a simulated process. Neither half of an address may look like a small
// number: two neighbouring 32-bit fields would be taken for a pointer (families 5 and 7 once were).
namespace guest {
inline constexpr std::uint64_t images = 0x2b51'4000'0000;
inline constexpr std::uint64_t heap = 0x3a97'1000'0000;
inline constexpr std::uint64_t objects = 0x4d2b'5000'0000;  ///< host-made objects, classes, names
inline constexpr std::uint64_t objects_size = std::uint64_t{8} << 20;
inline constexpr std::uint64_t traps = 0x5e3d'7000'0000;  ///< unmapped: a fetch leaves the engine
inline constexpr std::uint64_t traps_size = std::uint64_t{64} << 20;
inline constexpr std::uint64_t stack = 0x6f61'2000'0000;
inline constexpr std::uint64_t stack_size = std::uint64_t{8} << 20;
}  // namespace guest

struct Protection {
  bool read = true, write = false, execute = false;
};

/// A piece of the simulated address space and the host memory behind it.
struct Region {
  enum class Kind { image, heap, objects, stack };
  std::uint64_t address = 0, size = 0;
  std::uint8_t* host = nullptr;
  Protection protection;
  Kind kind = Kind::image;
  bool owned = false;  ///< false: somebody's file, which must not be written
};

/// The memory of one simulated process. Every access by the host is checked.
class Memory {
 public:
  static constexpr std::uint64_t page = 0x1000;  ///< of the engine, not of the guest

  Memory() = default;
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// Zero-filled; nullptr when the host has no memory left or the range is taken.
  std::uint8_t* map_zero(std::uint64_t address, std::uint64_t size, Protection protection,
                         Region::Kind kind);
  /// Shares the file's bytes; `size` is a multiple of the page.
  bool map_file(std::uint64_t address, Bytes bytes, Protection protection);
  const std::vector<Region>& regions() const { return regions_; }
  const Region* region(std::uint64_t address) const;

  bool read(std::uint64_t address, std::span<std::uint8_t> out) const;
  /// Refuses files and anything that is not writable, unless `force` (dyld and the runtime write
  /// into segments that are read-only later).
  bool write(std::uint64_t address, std::span<const std::uint8_t> bytes, bool force = false);
  bool move(std::uint64_t to, std::uint64_t from, std::uint64_t size);
  bool fill(std::uint64_t address, std::uint8_t value, std::uint64_t size);
  /// Zeroes what an allocator hands out: not a write of the program.
  bool clear(std::uint64_t address, std::uint64_t size);
  template <typename T>
  std::optional<T> load(std::uint64_t address) const {
    T value;
    if (!read(address, {reinterpret_cast<std::uint8_t*>(&value), sizeof(T)})) return std::nullopt;
    return value;
  }
  template <typename T>
  bool store(std::uint64_t address, T value, bool force = false) {
    return write(address, {reinterpret_cast<const std::uint8_t*>(&value), sizeof(T)}, force);
  }
  /// Up to `limit` bytes; none when it does not end before that or runs out of mapped memory.
  std::optional<std::string> cstring(std::uint64_t address,
                                     std::uint64_t limit = std::uint64_t{1} << 20) const;

  /// Notes that [address, address + size) was written by the program. Stack is left out.
  void mark_written(std::uint64_t address, std::uint64_t size);
  struct Span {
    std::uint64_t address = 0, size = 0;
  };
  /// Sorted, adjacent ones joined, at most `limit`.
  std::vector<Span> written(std::size_t limit) const;
  /// Bytes that the host has read and written so far: what imports cost beside instructions.
  std::uint64_t work() const { return work_; }

 private:
  using Marks = std::bitset<page>;
  bool add(Region region);

  std::vector<Region> regions_;  ///< sorted by address
  std::unordered_map<std::uint64_t, std::unique_ptr<Marks>> marks_;
  mutable std::uint64_t work_ = 0;
  std::uint64_t last_page_ = 0;
  Marks* last_marks_ = nullptr;
};

/// malloc of the simulated process: first use in address order, freed blocks are used again for
/// the same size, so that equal runs give equal addresses.
class Heap {
 public:
  struct Block {
    std::uint64_t size = 0;
    std::string site;  ///< who asked for it
    std::uint64_t ordinal = 0;
    bool live = true;
  };
  explicit Heap(std::uint64_t limit) : limit_(limit) {}

  /// 0 when the budget is spent.
  std::uint64_t allocate(std::uint64_t size, std::uint64_t alignment, const std::string& site);
  /// False when `address` is no live block.
  bool release(std::uint64_t address);
  const Block* block(std::uint64_t address) const;
  /// The live block that holds `address`, and its start.
  std::pair<std::uint64_t, const Block*> around(std::uint64_t address) const;
  std::uint64_t used() const { return next_ - guest::heap; }

 private:
  std::uint64_t limit_, next_ = guest::heap;
  std::unordered_map<std::uint64_t, Block> blocks_;
  std::vector<std::uint64_t> order_;  ///< starts, ascending
  std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> free_;
  std::unordered_map<std::string, std::uint64_t> ordinals_;
};

}  // namespace metaldoctor
