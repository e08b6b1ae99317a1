// A64 through LLVM: which opcodes mean what to the tracer.
#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

#include "scanners/code/lifter.h"

namespace metaldoctor {
namespace {

/// How LLVM orders an instruction's operands.
enum class Shape : std::uint8_t {
  none,          // nothing is read from the operands
  rd_imm,        // Rd, imm (adr, adrp: in words or pages)
  rd_imm_sh,     // Rd, imm16, shift
  rd_rd_imm_sh,  // movk: Rd, Rd, imm16, shift
  rd_rn_imm_sh,  // Rd, Rn, imm12, shift
  rd_rn_rm_sh,   // Rd, Rn, Rm, shifter
  rd_rn_rm_ext,  // Rd, Rn, Rm, extender
  rd_rn_bits,    // Rd, Rn, encoded logical immediate
  rd_rn_immr,    // Rd, Rn, immr, imms
  rt_rn_imm,     // Rt, Rn, offset
  rt_rn,         // Rt, Rn
  wb_rt_rn_imm,  // Rn', Rt, Rn, offset
  rt_rn_rm,      // Rt, Rn, Rm, sign, shift
  rt_rt2_rn_imm,
  wb_rt_rt2_rn_imm,
  rt_imm,       // Rt, literal offset in words
  rd_rn_rm_cc,  // csel
  rn_imm_nzcv_cc,
  rn_rm_nzcv_cc,
  imm,            // b, bl
  rn,             // br, blr
  cc_imm,         // b.cond
  rt_branch,      // cbz: Rt, imm
  rt_bit_branch,  // tbz: Rt, bit, imm
};

enum Trait : std::uint8_t { kFlags = 1, kSigned = 2, kVector = 4, kWide = 8 };

struct OpcodeRow {
  std::string_view name;  ///< LLVM's, with W/X already chosen
  Op op;
  Shape shape;
  std::uint8_t traits = 0;
  std::uint8_t size = 0;   ///< bytes accessed
  std::uint8_t scale = 1;  ///< of the offset operand
};

#define BOTH(name, suffix, op, shape, traits)                           \
  OpcodeRow{name "W" suffix, Op::op, Shape::shape, traits}, OpcodeRow { \
    name "X" suffix, Op::op, Shape::shape, (traits) | kWide             \
  }
#define MEMORY(kind, reg, op, traits, size)                                            \
  OpcodeRow{kind reg "ui", Op::op, Shape::rt_rn_imm, traits, size, size},              \
      OpcodeRow{kind reg "pre", Op::op##_pre, Shape::wb_rt_rn_imm, traits, size, 1},   \
      OpcodeRow{kind reg "post", Op::op##_post, Shape::wb_rt_rn_imm, traits, size, 1}, \
      OpcodeRow{kind reg "roX", Op::op##_reg, Shape::rt_rn_rm, traits, size, 1},       \
      OpcodeRow{kind reg "roW", Op::op##_reg, Shape::rt_rn_rm, traits, size, 1}
#define UNSCALED(name, op, traits, size) OpcodeRow{name, Op::op, Shape::rt_rn_imm, traits, size, 1}
#define PAIR(kind, reg, op, traits, size)                                                   \
  OpcodeRow{kind reg "i", Op::op, Shape::rt_rt2_rn_imm, traits, size, size},                \
      OpcodeRow{kind reg "pre", Op::op##_pre, Shape::wb_rt_rt2_rn_imm, traits, size, size}, \
      OpcodeRow {                                                                           \
    kind reg "post", Op::op##_post, Shape::wb_rt_rt2_rn_imm, traits, size, size             \
  }

constexpr OpcodeRow kOpcodes[] = {
    {"ADR", Op::adr, Shape::rd_imm, kWide},
    {"ADRP", Op::adrp, Shape::rd_imm, kWide},
    BOTH("MOVZ", "i", mov_wide, rd_imm_sh, 0),
    BOTH("MOVN", "i", mov_not, rd_imm_sh, 0),
    BOTH("MOVK", "i", mov_keep, rd_rd_imm_sh, 0),
    BOTH("ADD", "ri", add, rd_rn_imm_sh, 0),
    BOTH("ADDS", "ri", add, rd_rn_imm_sh, kFlags),
    BOTH("SUB", "ri", sub, rd_rn_imm_sh, 0),
    BOTH("SUBS", "ri", sub, rd_rn_imm_sh, kFlags),
    BOTH("ADD", "rs", add_reg, rd_rn_rm_sh, 0),
    BOTH("ADDS", "rs", add_reg, rd_rn_rm_sh, kFlags),
    BOTH("SUB", "rs", sub_reg, rd_rn_rm_sh, 0),
    BOTH("SUBS", "rs", sub_reg, rd_rn_rm_sh, kFlags),
    BOTH("ADD", "rx", add_reg, rd_rn_rm_ext, 0),
    BOTH("SUB", "rx", sub_reg, rd_rn_rm_ext, 0),
    BOTH("SUBS", "rx", sub_reg, rd_rn_rm_ext, kFlags),
    {"ADDXrx64", Op::add_reg, Shape::rd_rn_rm_ext, kWide},
    {"SUBXrx64", Op::sub_reg, Shape::rd_rn_rm_ext, kWide},
    {"SUBSXrx64", Op::sub_reg, Shape::rd_rn_rm_ext, kFlags | kWide},
    BOTH("AND", "ri", and_imm, rd_rn_bits, 0),
    BOTH("ANDS", "ri", and_imm, rd_rn_bits, kFlags),
    BOTH("ORR", "ri", orr_imm, rd_rn_bits, 0),
    BOTH("EOR", "ri", eor_imm, rd_rn_bits, 0),
    BOTH("AND", "rs", and_reg, rd_rn_rm_sh, 0),
    BOTH("ANDS", "rs", and_reg, rd_rn_rm_sh, kFlags),
    BOTH("ORR", "rs", orr_reg, rd_rn_rm_sh, 0),
    BOTH("EOR", "rs", eor_reg, rd_rn_rm_sh, 0),
    BOTH("BIC", "rs", bic_reg, rd_rn_rm_sh, 0),
    BOTH("BICS", "rs", bic_reg, rd_rn_rm_sh, kFlags),
    BOTH("UBFM", "ri", ubfm, rd_rn_immr, 0),
    BOTH("SBFM", "ri", sbfm, rd_rn_immr, 0),
    MEMORY("LDR", "X", load, kWide, 8),
    MEMORY("LDR", "W", load, 0, 4),
    MEMORY("LDR", "BB", load, 0, 1),
    MEMORY("LDR", "HH", load, 0, 2),
    MEMORY("LDR", "SW", load, kSigned | kWide, 4),
    MEMORY("LDR", "SBW", load, kSigned, 1),
    MEMORY("LDR", "SBX", load, kSigned | kWide, 1),
    MEMORY("LDR", "SHW", load, kSigned, 2),
    MEMORY("LDR", "SHX", load, kSigned | kWide, 2),
    MEMORY("LDR", "B", load, kVector, 1),
    MEMORY("LDR", "H", load, kVector, 2),
    MEMORY("LDR", "S", load, kVector, 4),
    MEMORY("LDR", "D", load, kVector, 8),
    MEMORY("LDR", "Q", load, kVector, 16),
    MEMORY("STR", "X", store, kWide, 8),
    MEMORY("STR", "W", store, 0, 4),
    MEMORY("STR", "BB", store, 0, 1),
    MEMORY("STR", "HH", store, 0, 2),
    MEMORY("STR", "B", store, kVector, 1),
    MEMORY("STR", "H", store, kVector, 2),
    MEMORY("STR", "S", store, kVector, 4),
    MEMORY("STR", "D", store, kVector, 8),
    MEMORY("STR", "Q", store, kVector, 16),
    UNSCALED("LDURXi", load, kWide, 8),
    UNSCALED("LDURWi", load, 0, 4),
    UNSCALED("LDURBBi", load, 0, 1),
    UNSCALED("LDURHHi", load, 0, 2),
    UNSCALED("LDURSWi", load, kSigned | kWide, 4),
    UNSCALED("LDURSBWi", load, kSigned, 1),
    UNSCALED("LDURSi", load, kVector, 4),
    UNSCALED("LDURDi", load, kVector, 8),
    UNSCALED("LDURQi", load, kVector, 16),
    UNSCALED("STURXi", store, kWide, 8),
    UNSCALED("STURWi", store, 0, 4),
    UNSCALED("STURBBi", store, 0, 1),
    UNSCALED("STURHHi", store, 0, 2),
    UNSCALED("STURSi", store, kVector, 4),
    UNSCALED("STURDi", store, kVector, 8),
    UNSCALED("STURQi", store, kVector, 16),
    {"LDARB", Op::load, Shape::rt_rn, 0, 1},
    {"LDARW", Op::load, Shape::rt_rn, 0, 4},
    {"LDARX", Op::load, Shape::rt_rn, kWide, 8},
    {"LDAPRB", Op::load, Shape::rt_rn, 0, 1},
    {"LDAPRW", Op::load, Shape::rt_rn, 0, 4},
    {"LDAPRX", Op::load, Shape::rt_rn, kWide, 8},
    {"STLRB", Op::store, Shape::rt_rn, 0, 1},
    {"STLRW", Op::store, Shape::rt_rn, 0, 4},
    {"STLRX", Op::store, Shape::rt_rn, kWide, 8},
    {"LDRXl", Op::load_literal, Shape::rt_imm, kWide, 8},
    {"LDRWl", Op::load_literal, Shape::rt_imm, 0, 4},
    PAIR("LDP", "X", load_pair, kWide, 8),
    PAIR("LDP", "W", load_pair, 0, 4),
    PAIR("LDP", "S", load_pair, kVector, 4),
    PAIR("LDP", "D", load_pair, kVector, 8),
    PAIR("LDP", "Q", load_pair, kVector, 16),
    PAIR("STP", "X", store_pair, kWide, 8),
    PAIR("STP", "W", store_pair, 0, 4),
    PAIR("STP", "S", store_pair, kVector, 4),
    PAIR("STP", "D", store_pair, kVector, 8),
    PAIR("STP", "Q", store_pair, kVector, 16),
    BOTH("CSEL", "r", csel, rd_rn_rm_cc, 0),
    BOTH("CSINC", "r", csinc, rd_rn_rm_cc, 0),
    BOTH("CSINV", "r", csinv, rd_rn_rm_cc, 0),
    BOTH("CSNEG", "r", csneg, rd_rn_rm_cc, 0),
    BOTH("CCMP", "i", ccmp_imm, rn_imm_nzcv_cc, 0),
    BOTH("CCMP", "r", ccmp_reg, rn_rm_nzcv_cc, 0),
    {"B", Op::b, Shape::imm},
    {"BL", Op::bl, Shape::imm},
    {"BR", Op::br, Shape::rn},
    {"BLR", Op::blr, Shape::rn},
    {"BRAA", Op::br, Shape::rn},
    {"BRAAZ", Op::br, Shape::rn},
    {"BRAB", Op::br, Shape::rn},
    {"BRABZ", Op::br, Shape::rn},
    {"BLRAA", Op::blr, Shape::rn},
    {"BLRAAZ", Op::blr, Shape::rn},
    {"BLRAB", Op::blr, Shape::rn},
    {"BLRABZ", Op::blr, Shape::rn},
    {"RET", Op::ret, Shape::none},
    {"RETAA", Op::ret, Shape::none},
    {"RETAB", Op::ret, Shape::none},
    {"Bcc", Op::b_cond, Shape::cc_imm},
    BOTH("CBZ", "", cbz, rt_branch, 0),
    BOTH("CBNZ", "", cbnz, rt_branch, 0),
    BOTH("TBZ", "", tbz, rt_bit_branch, 0),
    BOTH("TBNZ", "", tbnz, rt_bit_branch, 0),
    {"BRK", Op::trap, Shape::none},
    {"UDF", Op::trap, Shape::none},
    {"HINT", Op::nop, Shape::none},
};
#undef BOTH
#undef MEMORY
#undef UNSCALED
#undef PAIR

/// The bitmask immediate of AND, ORR, EOR (Arm ARM, DecodeBitMasks).
std::uint64_t logical_immediate(std::uint64_t encoded, bool wide) {
  const unsigned n = (encoded >> 12) & 1, immr = (encoded >> 6) & 63, imms = encoded & 63;
  const unsigned length = 31 - std::countl_zero((n << 6) | (~imms & 63) | 1u);
  const unsigned size = 1u << length, levels = size - 1;
  const unsigned ones = (imms & levels) + 1, rotate = immr & levels;
  std::uint64_t element = ones >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << ones) - 1;
  if (rotate) {
    const std::uint64_t mask = size == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << size) - 1;
    element = ((element >> rotate) | (element << (size - rotate))) & mask;
  }
  for (unsigned width = size; width < 64; width *= 2) element |= element << width;
  return wide ? element : element & 0xffffffff;
}

std::uint8_t register_of(std::string_view name) {
  if (name == "SP" || name == "WSP") return kSp;
  if (name == "XZR" || name == "WZR") return kZero;
  if (name == "FP") return 29;
  if (name == "LR") return 30;
  if (name.size() < 2 || name.size() > 3 || (name[0] != 'X' && name[0] != 'W')) return kNoReg;
  unsigned number = 0;
  for (const char c : name.substr(1)) {
    if (c < '0' || c > '9') return kNoReg;
    number = number * 10 + static_cast<unsigned>(c - '0');
  }
  return number <= 30 ? static_cast<std::uint8_t>(number) : kNoReg;
}

class Arm64Lifter : public Lifter {
 public:
  Arm64Lifter(const llvm::MCInstrInfo& instructions, const llvm::MCRegisterInfo& registers);
  void lift(const llvm::MCInst& inst, std::uint64_t address, std::uint8_t length,
            std::vector<Insn>& out) const override;

 private:
  std::uint8_t reg(const llvm::MCInst& inst, unsigned operand) const;
  void fill(const llvm::MCInst& inst, const OpcodeRow& row, Insn& out) const;
  void fill_branch(const llvm::MCInst& inst, const OpcodeRow& row, Insn& out) const;
  void fill_memory(const llvm::MCInst& inst, const OpcodeRow& row, Insn& out) const;
  void fill_other(const llvm::MCInst& inst, Insn& out) const;
  void index_opcodes();

  const llvm::MCInstrInfo& instructions_;
  const llvm::MCRegisterInfo& registers_;
  std::vector<std::uint8_t> numbers_;   ///< LLVM register -> ours
  std::vector<const OpcodeRow*> rows_;  ///< LLVM opcode -> row
  static const OpcodeRow kOther;
};

const OpcodeRow Arm64Lifter::kOther{"", Op::other, Shape::none, 0, 0, 1};

Arm64Lifter::Arm64Lifter(const llvm::MCInstrInfo& instructions,
                         const llvm::MCRegisterInfo& registers)
    : instructions_(instructions), registers_(registers) {
  numbers_.resize(registers.getNumRegs(), kNoReg);
  for (unsigned i = 1; i < numbers_.size(); ++i) numbers_[i] = register_of(registers.getName(i));
  index_opcodes();
}

void Arm64Lifter::index_opcodes() {
  std::vector<const OpcodeRow*> sorted;
  for (const OpcodeRow& row : kOpcodes) sorted.push_back(&row);
  const auto by_name = [](const OpcodeRow* a, const OpcodeRow* b) { return a->name < b->name; };
  std::sort(sorted.begin(), sorted.end(), by_name);
  rows_.assign(instructions_.getNumOpcodes(), &kOther);
  for (unsigned opcode = 0; opcode < rows_.size(); ++opcode) {
    const llvm::StringRef name = instructions_.getName(opcode);
    const OpcodeRow key{{name.data(), name.size()}, Op::other, Shape::none};
    const auto found = std::lower_bound(sorted.begin(), sorted.end(), &key, by_name);
    if (found != sorted.end() && (*found)->name == key.name) rows_[opcode] = *found;
  }
}

std::uint8_t Arm64Lifter::reg(const llvm::MCInst& inst, unsigned operand) const {
  if (operand >= inst.getNumOperands() || !inst.getOperand(operand).isReg()) return kNoReg;
  const unsigned number = inst.getOperand(operand).getReg();
  return number < numbers_.size() ? numbers_[number] : kNoReg;
}

void Arm64Lifter::fill_memory(const llvm::MCInst& inst, const OpcodeRow& row, Insn& out) const {
  unsigned first = 0;
  const bool write_back = row.shape == Shape::wb_rt_rn_imm || row.shape == Shape::wb_rt_rt2_rn_imm;
  if (write_back) first = 1;
  out.rd = reg(inst, first);
  const bool pair = row.shape == Shape::rt_rt2_rn_imm || row.shape == Shape::wb_rt_rt2_rn_imm;
  if (pair) out.ra = reg(inst, first + 1);
  const unsigned base = first + (pair ? 2 : 1);
  out.rn = reg(inst, base);
  if (row.shape == Shape::rt_rn_rm) {
    out.rm = reg(inst, base + 1);
    out.shift =
        immediate(inst, base + 3) ? static_cast<std::uint8_t>(std::countr_zero(out.size)) : 0;
  } else if (row.shape != Shape::rt_rn) {
    out.imm = immediate(inst, base + 1) * row.scale;
  }
}

void Arm64Lifter::fill(const llvm::MCInst& inst, const OpcodeRow& row, Insn& out) const {
  const auto target = [&](unsigned operand, std::int64_t unit) {
    return out.address + static_cast<std::uint64_t>(immediate(inst, operand) * unit);
  };
  switch (row.shape) {
    case Shape::none:
      return;
    case Shape::rd_imm:
      out.rd = reg(inst, 0);
      out.target = out.op == Op::adr ? target(1, 1)
                                     : (out.address & ~std::uint64_t{0xfff}) +
                                           static_cast<std::uint64_t>(immediate(inst, 1)) * 4096;
      return;
    case Shape::rd_imm_sh:
    case Shape::rd_rd_imm_sh: {
      const unsigned at = row.shape == Shape::rd_imm_sh ? 1 : 2;
      out.rd = reg(inst, 0);
      out.shift = static_cast<std::uint8_t>(immediate(inst, at + 1) & 63);
      out.imm = immediate(inst, at);
      return;
    }
    case Shape::rd_rn_imm_sh:
      out.rd = reg(inst, 0), out.rn = reg(inst, 1);
      out.imm = immediate(inst, 2) << (immediate(inst, 3) & 63);
      return;
    case Shape::rd_rn_rm_sh:
      out.rd = reg(inst, 0), out.rn = reg(inst, 1), out.rm = reg(inst, 2);
      out.shift = static_cast<std::uint8_t>(immediate(inst, 3) & 63);
      out.odd_shift = ((immediate(inst, 3) >> 6) & 7) != 0 && out.shift != 0;
      return;
    case Shape::rd_rn_rm_ext:
      out.rd = reg(inst, 0), out.rn = reg(inst, 1), out.rm = reg(inst, 2);
      out.shift = static_cast<std::uint8_t>(immediate(inst, 3) & 7);
      return;
    case Shape::rd_rn_bits:
      out.rd = reg(inst, 0), out.rn = reg(inst, 1);
      out.imm = static_cast<std::int64_t>(
          logical_immediate(static_cast<std::uint64_t>(immediate(inst, 2)), out.wide));
      return;
    case Shape::rd_rn_immr:
      out.rd = reg(inst, 0), out.rn = reg(inst, 1), out.imm = immediate(inst, 2);
      out.imms = static_cast<std::uint8_t>(immediate(inst, 3));
      return;
    case Shape::rt_imm:
      out.rd = reg(inst, 0), out.target = target(1, 4);
      return;
    case Shape::rd_rn_rm_cc:
      out.rd = reg(inst, 0), out.rn = reg(inst, 1), out.rm = reg(inst, 2);
      out.condition = static_cast<std::uint8_t>(immediate(inst, 3));
      return;
    case Shape::rn_imm_nzcv_cc:
    case Shape::rn_rm_nzcv_cc:
      out.rn = reg(inst, 0), out.rm = reg(inst, 1), out.imm = immediate(inst, 1);
      out.nzcv = static_cast<std::uint8_t>(immediate(inst, 2));
      out.condition = static_cast<std::uint8_t>(immediate(inst, 3));
      return;
    default:
      fill_branch(inst, row, out);
  }
}

void Arm64Lifter::fill_branch(const llvm::MCInst& inst, const OpcodeRow& row, Insn& out) const {
  const auto target = [&](unsigned operand) {
    return out.address + static_cast<std::uint64_t>(immediate(inst, operand) * 4);
  };
  switch (row.shape) {
    case Shape::imm:
      out.target = target(0);
      return;
    case Shape::rn:
      out.rn = reg(inst, 0);
      return;
    case Shape::cc_imm:
      out.condition = static_cast<std::uint8_t>(immediate(inst, 0));
      out.target = target(1);
      return;
    case Shape::rt_branch:
      out.rn = reg(inst, 0), out.target = target(1);
      return;
    case Shape::rt_bit_branch:
      out.rn = reg(inst, 0), out.imm = immediate(inst, 1), out.target = target(2);
      return;
    default:
      fill_memory(inst, row, out);
  }
}

void Arm64Lifter::fill_other(const llvm::MCInst& inst, Insn& out) const {
  const llvm::MCInstrDesc& desc = instructions_.get(inst.getOpcode());
  if (desc.getNumDefs() > 0) out.rd = reg(inst, 0);
  if (desc.getNumDefs() > 1) out.ra = reg(inst, 1);
  for (const llvm::MCPhysReg written : desc.implicit_defs())
    if (std::string_view(registers_.getName(written)) == "NZCV") out.sets_flags = true;
  if (desc.mayStore()) out.size = 1;  // to memory nobody follows
}

void Arm64Lifter::lift(const llvm::MCInst& inst, std::uint64_t address, std::uint8_t length,
                       std::vector<Insn>& steps) const {
  const OpcodeRow& row = *rows_[inst.getOpcode()];
  Insn out;
  out.address = address;
  out.length = length;
  out.op = row.op;
  out.wide = row.traits & kWide;
  out.sets_flags = row.traits & kFlags;
  out.is_signed = row.traits & kSigned;
  out.vector = row.traits & kVector;
  out.size = row.size;
  if (row.op == Op::other)
    fill_other(inst, out);
  else
    fill(inst, row, out);
  steps.push_back(out);
}

}  // namespace

std::unique_ptr<Lifter> make_arm64_lifter(const llvm::MCInstrInfo& instructions,
                                          const llvm::MCRegisterInfo& registers) {
  return std::make_unique<Arm64Lifter>(instructions, registers);
}

}  // namespace metaldoctor
