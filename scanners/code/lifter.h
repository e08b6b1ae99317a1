#pragma once
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCRegisterInfo.h>

#include <memory>
#include <vector>

#include "scanners/code/insn.h"

namespace metaldoctor {

/// Turns an instruction of LLVM's into steps of ours. Internal to scanners/code.
class Lifter {
 public:
  virtual ~Lifter() = default;
  /// Appends at least one step; `address` and `length` are the instruction's.
  virtual void lift(const llvm::MCInst& inst, std::uint64_t address, std::uint8_t length,
                    std::vector<Insn>& out) const = 0;
};

std::unique_ptr<Lifter> make_arm64_lifter(const llvm::MCInstrInfo& instructions,
                                          const llvm::MCRegisterInfo& registers);
std::unique_ptr<Lifter> make_x86_lifter(const llvm::MCInstrInfo& instructions,
                                        const llvm::MCRegisterInfo& registers);

/// What every lifter asks of an operand.
inline std::int64_t immediate(const llvm::MCInst& inst, unsigned operand) {
  if (operand >= inst.getNumOperands() || !inst.getOperand(operand).isImm()) return 0;
  return inst.getOperand(operand).getImm();
}

}  // namespace metaldoctor
