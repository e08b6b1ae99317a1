#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "scanners/code/expression.h"
#include "scanners/code/insn.h"
#include "scanners/code/program.h"

namespace metaldoctor {

/// What a register or memory cell holds, as far as it is known.
struct AbstractValue {
  enum class Kind : std::uint8_t {
    unknown,
    linear,  ///< base + offset; base 0 is a plain number or address
    set,     ///< one of a few numbers; `id` indexes ValueTable::set()
    expr,    ///< computed from device answers; `id` is an ExprId
    target,  ///< a selector or imported function; target()
    spread,  ///< base + one of a few offsets; `offset` indexes ValueTable::set()
  } kind = Kind::unknown;
  bool stale = false;  ///< a call that could have changed it lies between
  union {
    std::uint32_t base = 0;  ///< kind linear
    std::uint32_t id;        ///< kinds set and expr
  };
  std::int64_t offset = 0;  ///< kind linear; kind target keeps its pointer here

  const Target* target() const { return reinterpret_cast<const Target*>(offset); }
  // By hand: unions have no default comparison. Small on purpose: states hold hundreds of values.
  friend bool operator==(const AbstractValue& a, const AbstractValue& b) {
    return a.kind == b.kind && a.stale == b.stale && a.base == b.base && a.offset == b.offset;
  }
};
static_assert(sizeof(AbstractValue) == 16);

/// What an address is relative to. Bases are compared by number only.
struct Base {
  enum class Kind : std::uint8_t {
    number,     ///< base 0: no base
    stack,      ///< base 1: sp at entry
    parameter,  ///< `at` = register number at entry
    result,     ///< what the call at `at` returned
    loaded,     ///< what is stored at bases[parent] + offset
    walk,       ///< what a loop moves over, starting at bases[parent] + offset
  } kind = Kind::number;
  std::uint64_t at = 0;
  std::uint32_t parent = 0;
  std::int64_t offset = 0;
  bool device = false, device_list = false;
  bool fresh = false;         ///< memory just allocated: what nobody wrote, nobody reads
  bool architecture = false;  ///< what a message `architecture` gave
  auto key() const { return std::tie(kind, at, parent, offset); }
};

/// The bases and number sets of one function.
class ValueTable {
 public:
  ValueTable();
  std::uint32_t base(Base base);
  const Base& base(std::uint32_t id) const { return bases_[id]; }
  void mark_device(std::uint32_t id) { bases_[id].device = true; }
  void mark_device_list(std::uint32_t id) { bases_[id].device_list = true; }
  void mark_fresh(std::uint32_t id) { bases_[id].fresh = true; }
  void mark_architecture(std::uint32_t id) { bases_[id].architecture = true; }
  /// "parameter 0", "object from 0x67e0", "[parameter 0 + 0x8]".
  std::string describe(std::uint32_t base) const;

  std::uint32_t set(std::vector<std::int64_t> numbers);
  const std::vector<std::int64_t>& set(std::uint32_t id) const { return sets_[id]; }

 private:
  std::vector<Base> bases_;
  std::map<std::tuple<Base::Kind, std::uint64_t, std::uint32_t, std::int64_t>, std::uint32_t>
      base_index_;
  std::vector<std::vector<std::int64_t>> sets_;
  std::map<std::vector<std::int64_t>, std::uint32_t> set_index_;
};

inline AbstractValue number(std::int64_t n) {
  AbstractValue value;
  value.kind = AbstractValue::Kind::linear;
  value.offset = n;
  return value;
}
inline AbstractValue address(std::uint32_t base, std::int64_t offset) {
  AbstractValue value = number(offset);
  value.base = base;
  return value;
}
inline AbstractValue expression(ExprId id) {
  AbstractValue value;
  value.kind = AbstractValue::Kind::expr;
  value.id = id;
  return value;
}
inline AbstractValue held(const Target* target) {
  AbstractValue value;
  value.kind = AbstractValue::Kind::target;
  value.offset = reinterpret_cast<std::intptr_t>(target);
  return value;
}
inline AbstractValue spread(std::uint32_t base, std::uint32_t offsets) {
  AbstractValue value;
  value.kind = AbstractValue::Kind::spread;
  value.base = base;
  value.offset = offsets;
  return value;
}
inline bool is_set(const AbstractValue& v) {
  return v.kind == AbstractValue::Kind::set;
}
inline bool is_spread(const AbstractValue& v) {
  return v.kind == AbstractValue::Kind::spread;
}
inline bool is_number(const AbstractValue& v) {
  return v.kind == AbstractValue::Kind::linear && v.base == 0;
}
inline bool is_based(const AbstractValue& v) {
  return v.kind == AbstractValue::Kind::linear && v.base != 0;
}

/// What the last compare or test left in NZCV.
struct FlagState {
  enum class Kind : std::uint8_t { unknown, compare, test } kind = Kind::unknown;
  AbstractValue left, right;
  ExprId guard = 1;       ///< ccmp: the compare happened only if this holds
  std::uint8_t nzcv = 0;  ///< ccmp: the flags otherwise
  std::uint64_t at = 0;   ///< the instruction, to tell unknown comparisons apart
  friend bool operator==(const FlagState&, const FlagState&) = default;
};

struct Cell {
  std::uint32_t base = 0;
  std::int64_t offset = 0;
  std::uint8_t size = 0;
  AbstractValue value;
  friend bool operator==(const Cell&, const Cell&) = default;
};

/// The memory that is known, sorted by base and offset. Copies share their cells until one is
/// changed: most blocks of a large function store nothing.
class CellStore {
 public:
  const std::vector<Cell>& cells() const { return cells_ ? *cells_ : none(); }
  std::vector<Cell>& edit();
  void clear() { cells_.reset(); }
  bool same_as(const CellStore& other) const { return cells_ == other.cells_; }
  friend bool operator==(const CellStore& a, const CellStore& b) {
    return a.same_as(b) || a.cells() == b.cells();
  }

 private:
  static const std::vector<Cell>& none();
  std::shared_ptr<std::vector<Cell>> cells_;
};

/// What is known at one point of a function.
struct MachineState {
  std::array<AbstractValue, 32> regs;  ///< x0..x30, sp
  FlagState flags;
  CellStore memory;

  static constexpr std::size_t kMaxCells = 256;
  const Cell* cell(std::uint32_t base, std::int64_t offset) const;
  /// Stores; forgets what the bytes overlap.
  void store(std::uint32_t base, std::int64_t offset, std::uint8_t size,
             const AbstractValue& value);
  /// Forgets the cells that `gone` says yes to.
  template <typename Predicate>
  void forget(const Predicate& gone) {
    const auto& cells = memory.cells();
    if (std::any_of(cells.begin(), cells.end(), gone)) std::erase_if(memory.edit(), gone);
  }
  friend bool operator==(const MachineState&, const MachineState&) = default;
};

}  // namespace metaldoctor
