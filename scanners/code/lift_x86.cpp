// x86-64 through LLVM: each instruction becomes steps in A64's terms. Where the two differ:
// - a memory operand is loaded to a step register first, and stored from it last;
// - writing the low 8 or 16 bits of a register counts as writing all of it (compilers read no more
//   than they wrote), a high byte register makes its register unknown;
// - parity has no A64 condition: `al` and `nv` stand for it, which the tracer takes as unknown.
#include <bit>
#include <string_view>

#include "scanners/code/lifter.h"
#include "scanners/code/x86_table.h"

namespace metaldoctor {
namespace {

using namespace x86;

/// One instruction being lifted.
class Steps {
 public:
  Steps(std::uint64_t address, std::uint8_t length, std::vector<Insn>& out)
      : address_(address), length_(length), out_(out) {}

  Insn& add(Op op, bool wide = true) {
    Insn& step = out_.emplace_back();
    step.address = address_;
    step.length = length_;
    step.op = op;
    step.wide = wide;
    return step;
  }
  void move(std::uint8_t to, std::uint8_t from, bool wide) {
    Insn& step = add(Op::orr_reg, wide);
    step.rd = to, step.rn = kZero, step.rm = from;
  }
  void number(std::uint8_t to, std::int64_t value, bool wide) {
    Insn& step = add(Op::mov_wide, wide);
    step.rd = to, step.imm = value;
  }
  void forget(std::uint8_t reg) { add(Op::other).rd = reg; }
  std::uint64_t next() const { return address_ + length_; }

 private:
  std::uint64_t address_;
  std::uint8_t length_;
  std::vector<Insn>& out_;
};

class X86Lifter : public Lifter {
 public:
  X86Lifter(const llvm::MCInstrInfo& instructions, const llvm::MCRegisterInfo& registers)
      : instructions_(instructions) {
    numbers_.resize(registers.getNumRegs(), kNoReg);
    for (unsigned i = 1; i < numbers_.size(); ++i) {
      const std::string_view name = registers.getName(i);
      numbers_[i] = register_of(name);
      if (name == "EFLAGS") flags_ = i;
    }
    const auto by_name = x86::rows();
    rows_.resize(instructions.getNumOpcodes());
    for (unsigned opcode = 0; opcode < rows_.size(); ++opcode)
      if (const auto found = by_name.find(instructions.getName(opcode).str());
          found != by_name.end())
        rows_[opcode] = found->second;
  }

  void lift(const llvm::MCInst& inst, std::uint64_t address, std::uint8_t length,
            std::vector<Insn>& out) const override {
    const Row& row = rows_[inst.getOpcode()];
    Steps steps(address, length, out);
    const std::size_t before = out.size();
    if (row.work == Work::none || odd_operand(inst)) {
      unknown(inst, steps);
    } else if (row.work >= Work::push) {
      control(inst, row, steps);
    } else {
      compute(inst, row, steps);
    }
    if (out.size() == before) steps.add(Op::nop);
  }

 private:
  static constexpr unsigned kMemoryOperands = 5;  // base, scale, index, displacement, segment

  std::uint8_t reg(const llvm::MCInst& inst, unsigned operand) const {
    if (operand >= inst.getNumOperands() || !inst.getOperand(operand).isReg()) return kNoReg;
    const unsigned number = inst.getOperand(operand).getReg();
    return number < numbers_.size() ? numbers_[number] : kNoReg;
  }

  /// A high byte register or a segment: not followed.
  bool odd_operand(const llvm::MCInst& inst) const {
    const auto& operands = instructions_.get(inst.getOpcode()).operands();
    for (unsigned i = 0; i < inst.getNumOperands(); ++i) {
      const std::uint8_t number = reg(inst, i);
      if (number != kRip && number >= kHighByte) return true;
    }
    for (unsigned i = 0; i + kMemoryOperands <= operands.size(); ++i)
      if (operands[i].OperandType == llvm::MCOI::OPERAND_MEMORY)
        return i + 4 < inst.getNumOperands() && inst.getOperand(i + 4).isReg() &&
               inst.getOperand(i + 4).getReg() != 0;
    return false;
  }

  /// Whatever it writes becomes unknown; stores of vectors still clear what they overlap.
  void unknown(const llvm::MCInst& inst, Steps& steps) const {
    const llvm::MCInstrDesc& desc = instructions_.get(inst.getOpcode());
    const auto forget = [&](std::uint8_t number) {
      if (number == kNoReg || number == kRip) return;
      steps.forget(number >= kHighByte ? number - kHighByte : number);
    };
    for (unsigned i = 0; i < desc.getNumDefs(); ++i) forget(reg(inst, i));
    bool flags = false;
    for (const llvm::MCPhysReg written : desc.implicit_defs()) {
      forget(numbers_[written]);
      flags |= written == flags_;
    }
    if (flags) steps.add(Op::other).sets_flags = true;
    if (!desc.mayStore()) return;
    const auto& operands = desc.operands();
    for (unsigned i = 0; i + kMemoryOperands <= operands.size(); ++i)
      if (operands[i].OperandType == llvm::MCOI::OPERAND_MEMORY && !odd_operand(inst)) {
        const std::string_view name = instructions_.getName(inst.getOpcode());
        access(inst, i, Op::store, kNoReg, stored_bytes(name), steps).vector = true;
        return;
      }
    steps.add(Op::other).size = 1;
  }

  /// A load to, or a store from, `data` at the memory operand that starts at `first`.
  Insn& access(const llvm::MCInst& inst, unsigned first, Op op, std::uint8_t data,
               std::uint8_t bytes, Steps& steps) const {
    const std::uint8_t index = reg(inst, first + 2);
    std::uint8_t base = reg(inst, first);
    std::int64_t displacement = immediate(inst, first + 3);
    if (base == kRip) {
      const std::uint64_t target = steps.next() + static_cast<std::uint64_t>(displacement);
      if (op == Op::load && index == kNoReg) {
        Insn& step = steps.add(Op::load_literal, bytes == 8);
        step.rd = data, step.size = bytes, step.target = target;
        return step;
      }
      Insn& address = steps.add(Op::adr);
      address.rd = kStep1, address.target = target;
      base = kStep1, displacement = 0;
    } else if (base == kNoReg) {
      steps.number(kStep1, displacement, true);
      base = kStep1, displacement = 0;
    } else if (index != kNoReg && displacement != 0) {
      Insn& sum = steps.add(Op::add);
      sum.rd = kStep1, sum.rn = base, sum.imm = displacement;
      base = kStep1, displacement = 0;
    }
    Insn& step = steps.add(op, bytes == 8);
    step.rd = data, step.rn = base, step.size = bytes, step.imm = displacement;
    if (index != kNoReg) {
      step.op = op == Op::load ? Op::load_reg : Op::store_reg;
      step.rm = index, step.shift = scale(inst, first);
    }
    return step;
  }

  static std::uint8_t scale(const llvm::MCInst& inst, unsigned first) {
    const auto factor = static_cast<std::uint64_t>(immediate(inst, first + 1));
    return factor ? static_cast<std::uint8_t>(std::countr_zero(factor)) : 0;
  }

  void compute(const llvm::MCInst& inst, const Row& row, Steps& steps) const {
    switch (row.work) {
      case Work::move:
        return move(inst, row, steps);
      case Work::alu:
        return alu(inst, row, steps);
      case Work::compare:
      case Work::test:
        return compare(inst, row, steps);
      case Work::widen:
        return widen(inst, row, steps);
      case Work::lea:
        return lea(inst, row, steps);
      case Work::shift:
        return shift(inst, row, steps);
      case Work::carry:
        return carry(inst, row, steps);
      case Work::step: {
        Insn& step = steps.add(row.op_imm, row.bytes == 8);
        step.rd = reg(inst, 0), step.rn = reg(inst, 1), step.imm = 1, step.sets_flags = true;
        return;
      }
      case Work::set:
      case Work::cmov:
        return choose(inst, row, steps);
      case Work::trap:
        steps.add(Op::trap);
        return;
      default:
        return;
    }
  }

  void move(const llvm::MCInst& inst, const Row& row, Steps& steps) const {
    const bool wide = row.bytes == 8;
    switch (row.form) {
      case Form::rr:
        return steps.move(reg(inst, 0), reg(inst, 1), wide);
      case Form::ri:
        return steps.number(reg(inst, 0), immediate(inst, 1), wide);
      case Form::rm:
        access(inst, 1, Op::load, reg(inst, 0), row.bytes, steps);
        return;
      case Form::mr:
        access(inst, 0, Op::store, reg(inst, 5), row.bytes, steps);
        return;
      case Form::mi:
        steps.number(kStep0, immediate(inst, 5), wide);
        access(inst, 0, Op::store, kStep0, row.bytes, steps);
        return;
      default:
        return unknown(inst, steps);
    }
  }

  void alu(const llvm::MCInst& inst, const Row& row, Steps& steps) const {
    const bool wide = row.bytes == 8;
    const auto with = [&](std::uint8_t to, std::uint8_t left, std::uint8_t right) {
      const bool zero = left == right && (row.op == Op::eor_reg || row.op == Op::sub_reg);
      Insn& step = steps.add(row.op, wide);
      step.rd = to, step.rn = left, step.rm = right, step.sets_flags = true;
      if (zero) step.rn = step.rm = kZero;
    };
    const auto with_number = [&](std::uint8_t to, std::uint8_t left, std::int64_t right) {
      Insn& step = steps.add(row.op_imm, wide);
      step.rd = to, step.rn = left, step.imm = right, step.sets_flags = true;
    };
    switch (row.form) {
      case Form::rr:
        return with(reg(inst, 0), reg(inst, 1), reg(inst, 2));
      case Form::ri:
        return with_number(reg(inst, 0), reg(inst, 1), immediate(inst, 2));
      case Form::ai:
        return with_number(kRax, kRax, immediate(inst, 0));
      case Form::rm:
        access(inst, 2, Op::load, kStep0, row.bytes, steps);
        return with(reg(inst, 0), reg(inst, 1), kStep0);
      case Form::mr:
        access(inst, 0, Op::load, kStep0, row.bytes, steps);
        with(kStep0, kStep0, reg(inst, 5));
        access(inst, 0, Op::store, kStep0, row.bytes, steps);
        return;
      case Form::mi:
        access(inst, 0, Op::load, kStep0, row.bytes, steps);
        with_number(kStep0, kStep0, immediate(inst, 5));
        access(inst, 0, Op::store, kStep0, row.bytes, steps);
        return;
      default:
        return unknown(inst, steps);
    }
  }

  /// cmp, and test of a register with itself, which is a compare with 0; other tests are ands.
  void compare(const llvm::MCInst& inst, const Row& row, Steps& steps) const {
    std::uint8_t left = kStep0, right = kNoReg;
    std::int64_t number = 0;
    switch (row.form) {
      case Form::rr:
        left = reg(inst, 0), right = reg(inst, 1);
        break;
      case Form::ri:
        left = reg(inst, 0), number = immediate(inst, 1);
        break;
      case Form::ai:
        left = kRax, number = immediate(inst, 0);
        break;
      case Form::rm:
        access(inst, 1, Op::load, kStep0, row.bytes, steps);
        left = reg(inst, 0), right = kStep0;
        break;
      case Form::mr:
        access(inst, 0, Op::load, kStep0, row.bytes, steps);
        right = reg(inst, 5);
        break;
      case Form::mi:
        access(inst, 0, Op::load, kStep0, row.bytes, steps);
        number = immediate(inst, 5);
        break;
      default:
        return unknown(inst, steps);
    }
    const bool self = row.work == Work::test && left == right;
    const bool test = row.work == Work::test && !self;
    const bool immediate_form = right == kNoReg || self;
    const Op op = test ? (immediate_form ? Op::and_imm : Op::and_reg)
                       : (immediate_form ? Op::sub : Op::sub_reg);
    Insn& step = steps.add(op, row.bytes == 8);
    step.rd = kZero, step.rn = left, step.sets_flags = true;
    if (immediate_form)
      step.imm = self ? 0 : number;
    else
      step.rm = right;
  }

  void widen(const llvm::MCInst& inst, const Row& row, Steps& steps) const {
    if (row.form == Form::rm) {
      Insn& load = access(inst, 1, Op::load, reg(inst, 0), row.from, steps);
      load.is_signed = row.is_signed, load.wide = row.bytes == 8;
      return;
    }
    Insn& step = steps.add(row.is_signed ? Op::sbfm : Op::ubfm, row.bytes == 8);
    step.rd = reg(inst, 0), step.rn = reg(inst, 1);
    step.imms = static_cast<std::uint8_t>(row.from * 8 - 1);
  }

  void lea(const llvm::MCInst& inst, const Row& row, Steps& steps) const {
    const std::uint8_t to = reg(inst, 0), base = reg(inst, 1), index = reg(inst, 3);
    const std::int64_t displacement = immediate(inst, 4);
    const bool wide = row.bytes == 8;
    if (base == kRip) {
      Insn& step = steps.add(Op::adr);
      step.rd = to, step.target = steps.next() + static_cast<std::uint64_t>(displacement);
      return;
    }
    if (index == kNoReg && base == kNoReg) return steps.number(to, displacement, wide);
    std::uint8_t sum = base;
    if (index != kNoReg) {
      Insn& step = steps.add(Op::add_reg, wide);
      step.rd = displacement ? kStep0 : to;
      step.rn = base == kNoReg ? kZero : base, step.rm = index, step.shift = scale(inst, 1);
      sum = kStep0;
      if (!displacement) return;
    }
    Insn& step = steps.add(Op::add, wide);
    step.rd = to, step.rn = sum, step.imm = displacement;
  }

  void shift(const llvm::MCInst& inst, const Row& row, Steps& steps) const {
    const unsigned width = row.bytes * 8u;
    const unsigned by =
        row.form == Form::r ? 1 : static_cast<unsigned>(immediate(inst, 2)) & (width - 1);
    const bool left = row.op_imm == Op::add;
    Insn& step = steps.add(row.op, row.bytes == 8);
    step.rd = reg(inst, 0), step.rn = reg(inst, 1);
    step.imm = left ? (width - by) % width : by;
    step.imms = static_cast<std::uint8_t>(left ? width - 1 - by : width - 1);
    if (by) steps.add(Op::other).sets_flags = true;
  }

  /// adc and sbb with a number, or of a register with itself: one of two results.
  void carry(const llvm::MCInst& inst, const Row& row, Steps& steps) const {
    const bool self = row.form == Form::rr && row.op_imm == Op::sub && reg(inst, 1) == reg(inst, 2);
    if (row.form != Form::ri && !self) return unknown(inst, steps);
    const bool wide = row.bytes == 8;
    const auto plus = [&](std::uint8_t to, std::uint8_t from, std::int64_t value) {
      Insn& step = steps.add(row.op_imm, wide);
      step.rd = to, step.rn = from, step.imm = value;
    };
    plus(kStep0, self ? kZero : reg(inst, 1), self ? 0 : immediate(inst, 2));
    plus(kStep1, kStep0, 1);
    Insn& step = steps.add(Op::csel, wide);
    step.rd = reg(inst, 0), step.rn = kStep0, step.rm = kStep1, step.condition = hs;
    steps.add(Op::other).sets_flags = true;
  }

  /// setcc and cmovcc.
  void choose(const llvm::MCInst& inst, const Row& row, Steps& steps) const {
    const unsigned last = inst.getNumOperands() - 1;
    const std::uint8_t condition = kConditions[immediate(inst, last) & 15];
    if (row.work == Work::set) {
      Insn& step = steps.add(Op::csinc, false);
      step.rd = row.form == Form::r ? reg(inst, 0) : kStep0;
      step.rn = step.rm = kZero, step.condition = condition ^ 1;
      if (row.form == Form::m) access(inst, 0, Op::store, kStep0, 1, steps);
      return;
    }
    if (row.form != Form::rr && row.form != Form::rm) return unknown(inst, steps);
    if (row.form == Form::rm) access(inst, 2, Op::load, kStep0, row.bytes, steps);
    Insn& step = steps.add(Op::csel, row.bytes == 8);
    step.rd = reg(inst, 0), step.rm = reg(inst, 1), step.condition = condition;
    step.rn = row.form == Form::rm ? kStep0 : reg(inst, 2);
  }

  void control(const llvm::MCInst& inst, const Row& row, Steps& steps) const {
    const auto target = [&] {
      return steps.next() + static_cast<std::uint64_t>(immediate(inst, 0));
    };
    switch (row.work) {
      case Work::push:
        return push(inst, row, steps);
      case Work::pop: {
        Insn& step = steps.add(Op::load_post);
        step.rd = reg(inst, 0), step.rn = kSp, step.imm = 8, step.size = 8;
        return;
      }
      case Work::leave: {
        steps.move(kSp, kRbp, true);
        Insn& step = steps.add(Op::load_post);
        step.rd = kRbp, step.rn = kSp, step.imm = 8, step.size = 8;
        return;
      }
      case Work::call:
      case Work::jump: {
        const bool call = row.work == Work::call;
        if (row.form == Form::m) access(inst, 0, Op::load, kStep0, 8, steps);
        Insn& step =
            steps.add(row.form == Form::i ? (call ? Op::bl : Op::b) : (call ? Op::blr : Op::br));
        if (row.form == Form::i)
          step.target = target();
        else
          step.rn = row.form == Form::m ? kStep0 : reg(inst, 0);
        return;
      }
      case Work::jump_if: {
        Insn& step = steps.add(Op::b_cond);
        step.target = target();
        step.condition = kConditions[immediate(inst, 1) & 15];
        return;
      }
      default:
        steps.add(Op::ret);
    }
  }

  void push(const llvm::MCInst& inst, const Row& row, Steps& steps) const {
    std::uint8_t from = kStep0;
    if (row.form == Form::i) steps.number(kStep0, immediate(inst, 0), true);
    if (row.form == Form::m) access(inst, 0, Op::load, kStep0, 8, steps);
    if (row.form == Form::r) from = reg(inst, 0);
    Insn& step = steps.add(Op::store_pre);
    step.rd = from, step.rn = kSp, step.imm = -8, step.size = 8;
  }

  const llvm::MCInstrInfo& instructions_;
  std::vector<std::uint8_t> numbers_;  ///< LLVM register -> ours
  std::vector<Row> rows_;              ///< by LLVM opcode
  unsigned flags_ = 0;
};

}  // namespace

std::unique_ptr<Lifter> make_x86_lifter(const llvm::MCInstrInfo& instructions,
                                        const llvm::MCRegisterInfo& registers) {
  return std::make_unique<X86Lifter>(instructions, registers);
}

}  // namespace metaldoctor
