#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "scanners/code/arch.h"

namespace metaldoctor::x86 {

/// What an instruction does. Internal to scanners/code.
enum class Work : std::uint8_t {
  none,  // only what it writes becomes unknown
  nop,
  trap,
  alu,      // dst = dst op src
  compare,  // flags of a - b
  test,     // flags of a & b
  move,
  widen,  // movzx, movsx
  lea,
  shift,
  carry,  // adc and sbb: a number, and one more if the carry flag is set
  step,   // inc, dec
  set,    // setcc
  cmov,
  push,
  pop,
  leave,
  call,
  jump,
  jump_if,
  ret,
};

/// Where the operands are.
enum class Form : std::uint8_t {
  none,
  rr,  // register(s), register
  ri,  // register(s), immediate
  rm,  // register(s), memory
  mr,  // memory, register
  mi,  // memory, immediate
  ai,  // the accumulator and an immediate
  m,   // memory
  r,   // register
  i,   // immediate
};

struct Row {
  Work work = Work::none;
  Form form = Form::none;
  Op op = Op::other;       ///< alu with a register
  Op op_imm = Op::other;   ///< alu with an immediate
  std::uint8_t bytes = 8;  ///< of the operation
  std::uint8_t from = 0;   ///< widen: bytes of the source
  bool is_signed = false;
};

/// By LLVM's opcode name.
std::unordered_map<std::string, Row> rows();

constexpr std::uint8_t kHighByte = 64;  ///< added to the number of AH, BH, CH, DH
constexpr std::uint8_t kRip = 128;
/// By LLVM's register name; all parts of a register have its number.
std::uint8_t register_of(std::string_view name);

/// Bytes that an instruction stores which is not in rows(), by its name; 16 where nothing tells.
std::uint8_t stored_bytes(std::string_view opcode);

/// x86 condition codes by number, as A64's.
constexpr std::array<std::uint8_t, 16> kConditions = {vs, vc, lo, hs, eq, ne, ls, hi,
                                                      mi, pl, al, nv, lt, ge, le, gt};

}  // namespace metaldoctor::x86
