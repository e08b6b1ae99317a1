#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "scanners/code/insn.h"

namespace metaldoctor {

/// A basic block of one function. Edges are block numbers.
struct Block {
  std::uint32_t first = 0, last = 0;      ///< instructions [first, last)
  std::vector<std::uint32_t> successors;  ///< conditional branch: [taken, fall through]
  std::vector<std::uint32_t> predecessors;
  bool conditional = false;  ///< ends in a conditional branch with two successors
  bool returns = false;      ///< ret, tail call
};

/// The control flow of one function.
struct Flow {
  std::vector<Block> blocks;                     ///< in address order; 0 is the entry
  std::vector<std::uint32_t> order;              ///< reverse postorder of all blocks
  std::vector<std::uint32_t> position;           ///< of each block in `order`
  std::vector<std::uint32_t> dominator;          ///< immediate; the entry's is itself
  std::vector<std::uint32_t> tree_in, tree_out;  ///< a walk of the dominator tree
  bool has_loop = false;

  std::uint32_t block_at(const std::vector<Insn>& code, std::uint64_t address) const;
  bool dominates(std::uint32_t above, std::uint32_t below) const {
    return tree_in[above] <= tree_in[below] && tree_out[below] <= tree_out[above];
  }
  /// True if `from` -> `to` goes back to a block that comes earlier in `order`.
  bool is_back_edge(std::uint32_t from, std::uint32_t to) const {
    return position[to] <= position[from];
  }
};

/// The index of the first step at an address; the size of `code` if there is none.
std::size_t step_at(const std::vector<Insn>& code, std::uint64_t address);

/// `ends_here` tells which calls do not return. Blocks that only an indirect branch can reach are
/// taken as successors of every indirect branch of the function.
Flow make_flow(const std::vector<Insn>& code, const std::function<bool(const Insn&)>& ends_here);

}  // namespace metaldoctor
