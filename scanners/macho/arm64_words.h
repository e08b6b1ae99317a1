#pragma once
#include <cstdint>

namespace metaldoctor::arm64 {

// The few A64 encodings that are recognised without a disassembler: what reaches a stub or slot.
// Names and fields are those of the Arm Architecture Reference Manual, section C4.1.

constexpr std::uint32_t rd(std::uint32_t word) {
  return word & 31;
}
constexpr std::uint32_t rn(std::uint32_t word) {
  return (word >> 5) & 31;
}

constexpr bool is_b(std::uint32_t word) {
  return (word & 0xfc000000) == 0x14000000;
}
constexpr bool is_bl(std::uint32_t word) {
  return (word & 0xfc000000) == 0x94000000;
}
constexpr std::uint64_t branch_target(std::uint32_t word, std::uint64_t pc) {
  return pc + static_cast<std::int64_t>(static_cast<std::int32_t>(word << 6) >> 4);
}

constexpr bool is_adrp(std::uint32_t word) {
  return (word & 0x9f000000) == 0x90000000;
}
constexpr bool is_adr(std::uint32_t word) {
  return (word & 0x9f000000) == 0x10000000;
}
/// imm21 of adr and adrp.
constexpr std::int64_t adr_immediate(std::uint32_t word) {
  const std::uint32_t raw = ((word >> 3) & 0x1ffffc) | ((word >> 29) & 3);
  return static_cast<std::int32_t>(raw << 11) >> 11;
}
constexpr std::uint64_t adrp_target(std::uint32_t word, std::uint64_t pc) {
  return (pc & ~std::uint64_t{0xfff}) + static_cast<std::uint64_t>(adr_immediate(word)) * 4096;
}
constexpr std::uint64_t adr_target(std::uint32_t word, std::uint64_t pc) {
  return pc + adr_immediate(word);
}

/// ldr Xt, [Xn, #imm12 * 8]
constexpr bool is_ldr_x(std::uint32_t word) {
  return (word & 0xffc00000) == 0xf9400000;
}
constexpr std::uint64_t ldr_x_offset(std::uint32_t word) {
  return ((word >> 10) & 0xfff) * 8;
}
/// ldr Xt, label
constexpr bool is_ldr_literal_x(std::uint32_t word) {
  return (word & 0xff000000) == 0x58000000;
}
constexpr std::uint64_t ldr_literal_target(std::uint32_t word, std::uint64_t pc) {
  return pc + static_cast<std::int64_t>((static_cast<std::int32_t>(word << 8) >> 13) * 4);
}
/// add Xd, Xn, #imm12
constexpr bool is_add_x(std::uint32_t word) {
  return (word & 0xffc00000) == 0x91000000;
}
constexpr std::uint64_t add_x_immediate(std::uint32_t word) {
  return (word >> 10) & 0xfff;
}

constexpr bool is_br(std::uint32_t word) {
  return (word & 0xfffffc1f) == 0xd61f0000;
}

}  // namespace metaldoctor::arm64
