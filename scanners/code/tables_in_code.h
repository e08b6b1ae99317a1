#pragma once
#include <optional>
#include <vector>

#include "scanners/code/trace.h"

namespace metaldoctor {

/// An argument that a loop loads from a table, one element a round.
struct TableWalk {
  std::optional<unsigned> parameter;  ///< the function's that points to the table; else:
  std::uint64_t address = 0;          ///< of the first element
  std::int64_t first = 0;             ///< offset of the first element from the parameter
  std::uint32_t base = 0;             ///< the pointer that moves
  std::int64_t offset = 0;            ///< of the element from it
};
std::optional<TableWalk> table_walk(const FunctionTrace& trace, const AbstractValue& value);

constexpr std::size_t kMaxTable = 64;
/// `count` 64-bit numbers of constant data; none if they are not all there.
std::optional<std::vector<std::int64_t>> table_elements(const Program& program,
                                                        std::uint64_t address, std::size_t count);
/// The elements of a table at a fixed address, if the loop compares its pointer with the end.
std::optional<std::vector<std::int64_t>> walked_elements(const Program& program,
                                                         const FunctionTrace& trace,
                                                         const TableWalk& walk);

}  // namespace metaldoctor
