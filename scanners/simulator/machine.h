#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "scanners/simulator/memory.h"
#include "scanners/simulator/protocol.h"

namespace metaldoctor {

enum class SimArch { arm64, x86_64 };

/// One processor. Runs code until it leaves mapped memory, faults, or runs out of budget; it knows
/// nothing of Mach-O or Objective-C. One engine serves all runs of a request: making one costs
/// more than a typical run.
class Machine {
 public:
  static Result<std::unique_ptr<Machine>> open(SimArch arch);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  SimArch arch() const { return arch_; }

  /// Forgets everything of an earlier run and uses `memory`, which must outlive the run.
  Result<void> start(Memory& memory, const SimBudget& budget,
                     std::function<std::uint64_t()> milliseconds);
  /// Makes the first `size` bytes of the heap or of the objects visible. They are not mapped
  /// whole: taking a region away again costs the engine a step for every page. The stack grows by
  /// itself, downwards.
  bool expose(Region::Kind kind, std::uint64_t size);
  void finish();

  struct Exit {
    enum class Kind {
      fetch,  ///< the program counter left mapped memory: a trap, or a wild jump
      read,
      write,
      instruction,
      breakpoint,
      system_call,
      halted,
      budget_instructions,
      budget_time,
      clock,   ///< an instruction whose result differs from run to run
      engine,  ///< the engine itself failed
    } kind = Kind::engine;
    std::uint64_t address = 0;  ///< that was fetched, read or written
    std::uint64_t pc = 0;
    std::uint64_t size = 0;
    bool mapped = false;  ///< the address is mapped, but not for this kind of access
    std::string text;     ///< kind engine: the engine's own words
  };
  /// Continues at pc().
  Exit run();

  std::uint64_t pc() const;
  std::uint64_t sp() const;
  void set_pc(std::uint64_t value);
  void set_sp(std::uint64_t value);
  /// Integer argument registers: x0-x7, or rdi, rsi, rdx, rcx, r8, r9.
  static constexpr unsigned max_registers = 8;
  unsigned argument_registers() const { return arch_ == SimArch::arm64 ? 8 : 6; }
  std::uint64_t argument(unsigned index) const;
  void set_argument(unsigned index, std::uint64_t value);
  /// v0-v7, xmm0-xmm7: the low 64 bits.
  std::uint64_t vector(unsigned index) const;
  void set_vector(unsigned index, std::uint64_t bits);
  std::uint64_t result() const;
  void set_result(std::uint64_t value);
  void set_second_result(std::uint64_t value);  ///< x1, rdx
  /// x8 (arm64): where a large structure is to be returned.
  std::uint64_t structure_pointer() const;
  /// Any general register by its number: x0-x30.
  std::uint64_t general(unsigned number) const;
  /// Right after a call instruction (or at an import's entry): where it will return to.
  std::uint64_t return_address(const Memory& memory) const;
  /// Returns from an import: pc = return address, on x86_64 popped.
  void leave(const Memory& memory);
  /// Prepares a call that returns to `return_to`; the arguments are set by the caller.
  bool enter(Memory& memory, std::uint64_t function, std::uint64_t return_to);

  /// What a call from the host must find again afterwards.
  struct Saved {
    std::uint64_t pc = 0, sp = 0, link = 0;
  };
  Saved save() const;
  void restore(const Saved& saved);

  std::uint64_t instructions() const { return instructions_; }
  /// Distinct blocks in order of first execution, and the order in which blocks ran (bounded).
  const std::vector<std::uint64_t>& blocks() const { return blocks_; }
  const std::vector<std::uint32_t>& walk() const { return walk_; }

  /// `visit` is called when execution reaches `address` with this stack pointer: the moment a call
  /// returns to its caller.
  void watch_return(std::uint64_t address, std::uint64_t sp, std::function<void()> visit);
  /// The same for a return to a trap, which is no block. True when something was waiting.
  bool returned_to(std::uint64_t address, std::uint64_t sp);

 private:
  explicit Machine(SimArch arch);
  struct Engine;  // Unicorn's types stay in the .cpp
  friend struct Hooks;
  bool map(const Region& region, std::uint64_t from, std::uint64_t to);
  bool grow_stack(std::uint64_t address);
  void reached_block(std::uint64_t address, std::uint32_t size);
  void reached_instruction(std::uint64_t address, std::uint32_t size);
  Exit classify(int error);

  struct Watch {
    std::uint64_t address, sp;
    std::function<void()> visit;
  };
  SimArch arch_;
  std::unique_ptr<Engine> engine_;
  Memory* memory_ = nullptr;
  /// Bytes that are visible, by Region::Kind; of the stack its upper end.
  std::array<std::uint64_t, 4> exposed_{};
  SimBudget budget_;
  std::function<std::uint64_t()> milliseconds_;
  std::uint64_t started_ = 0, instructions_ = 0, block_count_ = 0;
  std::unordered_map<std::uint64_t, std::uint32_t> block_ids_;
  /// What block_ids_ says of blocks that ran lately: loops need no look-up.
  struct RecentBlock {
    std::uint64_t address = 0;
    std::uint32_t id = 0;
  };
  std::array<RecentBlock, 256> recent_{};
  std::vector<std::uint64_t> blocks_;
  std::vector<std::uint32_t> walk_;
  std::vector<Watch> watches_;
  std::optional<Exit> pending_;
};

}  // namespace metaldoctor
