#include "scanners/code/value.h"

#include <fmt/format.h>

#include <algorithm>

namespace metaldoctor {

ValueTable::ValueTable() {
  base(Base{});
  Base stack;
  stack.kind = Base::Kind::stack;
  base(stack);
}

std::uint32_t ValueTable::base(Base base) {
  const auto [found, added] =
      base_index_.emplace(base.key(), static_cast<std::uint32_t>(bases_.size()));
  if (added) bases_.push_back(base);
  return found->second;
}

std::string ValueTable::describe(std::uint32_t id) const {
  const Base& base = bases_[id];
  switch (base.kind) {
    case Base::Kind::number:
      return "address";
    case Base::Kind::stack:
      return "stack";
    case Base::Kind::parameter:
      return fmt::format("parameter {}", base.at);
    case Base::Kind::result:
      return fmt::format("result of call {:#x}", base.at);
    case Base::Kind::walk:
      return base.parent == 0
                 ? fmt::format("loop from {:#x}", static_cast<std::uint64_t>(base.offset))
                 : fmt::format("loop from {}", describe(base.parent));
    case Base::Kind::loaded:
      break;
  }
  // Chains of loads can be long in damaged code; two levels say enough.
  const Base& parent = bases_[base.parent];
  const std::string of = parent.kind == Base::Kind::loaded ? "[...]" : describe(base.parent);
  if (base.parent == 0) return fmt::format("[{:#x}]", static_cast<std::uint64_t>(base.offset));
  return base.offset < 0 ? fmt::format("[{} - {:#x}]", of, -static_cast<std::uint64_t>(base.offset))
                         : fmt::format("[{} + {:#x}]", of, base.offset);
}

std::uint32_t ValueTable::set(std::vector<std::int64_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  const auto [found, added] = set_index_.emplace(numbers, static_cast<std::uint32_t>(sets_.size()));
  if (added) sets_.push_back(std::move(numbers));
  return found->second;
}

namespace {

bool before(const Cell& cell, std::pair<std::uint32_t, std::int64_t> at) {
  return std::pair(cell.base, cell.offset) < at;
}

}  // namespace

const std::vector<Cell>& CellStore::none() {
  static const std::vector<Cell> empty;
  return empty;
}

std::vector<Cell>& CellStore::edit() {
  if (!cells_) {
    cells_ = std::make_shared<std::vector<Cell>>();
  } else if (cells_.use_count() > 1) {
    auto copy = std::make_shared<std::vector<Cell>>();
    copy->reserve(cells_->size() + 16);  // a block stores a few more
    copy->assign(cells_->begin(), cells_->end());
    cells_ = std::move(copy);
  }
  return *cells_;
}

const Cell* MachineState::cell(std::uint32_t base, std::int64_t offset) const {
  const auto& cells = memory.cells();
  const auto found = std::lower_bound(cells.begin(), cells.end(), std::pair(base, offset), before);
  return found != cells.end() && found->base == base && found->offset == offset ? &*found : nullptr;
}

void MachineState::store(std::uint32_t base, std::int64_t offset, std::uint8_t size,
                         const AbstractValue& value) {
  if (offset < INT64_MIN + 16 || offset > INT64_MAX - 16) return;
  const auto& known = memory.cells();
  const auto near =
      std::lower_bound(known.begin(), known.end(), std::pair(base, offset - 15), before);
  const bool forgets = value.kind == AbstractValue::Kind::unknown;
  if (forgets && (near == known.end() || near->base != base || near->offset >= offset + size))
    return;
  auto& cells = memory.edit();
  auto at = std::lower_bound(cells.begin(), cells.end(), std::pair(base, offset - 15), before);
  while (at != cells.end() && at->base == base && at->offset < offset + size) {
    if (at->offset == offset && at->size == size && !forgets) {
      at->value = value;
      return;
    }
    if (at->offset + at->size > offset)
      at = cells.erase(at);
    else
      ++at;
  }
  if (forgets || cells.size() >= kMaxCells) return;
  cells.insert(std::lower_bound(cells.begin(), cells.end(), std::pair(base, offset), before),
               Cell{base, offset, size, value});
}

}  // namespace metaldoctor
