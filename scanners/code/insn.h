#pragma once
#include <cstdint>

namespace metaldoctor {

/// What the tracer distinguishes among instructions, in A64's terms; an x86-64 instruction becomes
/// one or more of these. The list is short on purpose: everything else is `other`, which only makes
/// the registers it writes unknown.
enum class Op : std::uint8_t {
  other,
  nop,
  trap,
  adr,
  adrp,
  mov_wide,
  mov_not,
  mov_keep,
  add,
  add_reg,
  sub,
  sub_reg,
  and_imm,
  and_reg,
  orr_imm,
  orr_reg,
  eor_imm,
  eor_reg,
  bic_reg,
  ubfm,
  sbfm,
  load,
  load_pre,
  load_post,
  load_reg,
  load_literal,
  store,
  store_pre,
  store_post,
  store_reg,
  load_pair,
  load_pair_pre,
  load_pair_post,
  store_pair,
  store_pair_pre,
  store_pair_post,
  csel,
  csinc,
  csinv,
  csneg,
  ccmp_imm,
  ccmp_reg,
  b,
  bl,
  br,
  blr,
  b_cond,
  cbz,
  cbnz,
  tbz,
  tbnz,
  ret,
};

constexpr std::uint8_t kSp = 31, kZero = 32, kNoReg = 33;

/// One decoded instruction, or one step of an x86-64 instruction: the steps share its address and
/// length. Fields that an Op does not have are left at their defaults.
struct Insn {
  std::uint64_t address = 0;
  Op op = Op::other;
  std::uint8_t length = 4;
  bool wide = false;  ///< 64-bit operation
  bool sets_flags = false;
  bool is_signed = false;  ///< sign-extending load
  bool vector = false;     ///< loads or stores a floating-point register
  std::uint8_t size = 0;   ///< bytes of memory accessed, per register
  std::uint8_t rd = kNoReg, rn = kNoReg, rm = kNoReg, ra = kNoReg;  ///< ra: second of a pair
  std::uint8_t shift = 0;      ///< of rm, left; extends are taken as 0
  bool odd_shift = false;      ///< rm is shifted some other way
  std::uint8_t condition = 0;  ///< A64 condition code
  std::uint8_t nzcv = 0;
  std::int64_t imm = 0;  ///< immediate, byte offset, bit number, or (bitfield) immr
  std::uint8_t imms = 0;
  std::uint64_t target = 0;  ///< branches, adr, adrp, load_literal
};

/// "eq" = 0, "ne" = 1 ...
enum Condition : std::uint8_t { eq, ne, hs, lo, mi, pl, vs, vc, hi, ls, ge, lt, gt, le, al, nv };

}  // namespace metaldoctor
