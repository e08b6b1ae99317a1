#pragma once
#include <array>
#include <cstdint>

#include "scanners/code/insn.h"

namespace metaldoctor {

/// What the tracer must know about a processor and its calling convention.
struct Arch {
  enum class Kind : std::uint8_t { arm64, x86_64 } kind = Kind::arm64;
  std::array<std::uint8_t, 8> arguments{};  ///< integer argument registers, in order
  std::uint8_t argument_count = 0;
  std::uint8_t result = 0, frame = 0;
  /// A register at entry that is no argument but still names something: the address of a returned
  /// structure (x8); kNoReg if that is an argument.
  std::uint8_t structure_result = kNoReg;
  std::uint32_t clobbered = 0;  ///< bit n: register n does not survive a call
};

/// Procedure Call Standard for the Arm 64-bit Architecture, as Apple uses it (x18 is reserved).
constexpr Arch kArm64{Arch::Kind::arm64,        {0, 1, 2, 3, 4, 5, 6, 7}, 8, 0, 29, 8,
                      (1u << 19) - 1 | 1u << 30};

/// Registers of x86-64 by their number in instructions, but rsp is kSp as on arm64; 16 and 17 hold
/// what one step of an instruction hands to the next.
enum X86Register : std::uint8_t { kRax = 0, kRcx, kRdx, kRbx, kRbp = 5, kRsi, kRdi, kR8 };
constexpr std::uint8_t kStep0 = 16, kStep1 = 17;

/// System V Application Binary Interface, AMD64.
constexpr Arch kX86_64{Arch::Kind::x86_64,
                       {kRdi, kRsi, kRdx, kRcx, kR8, 9, 0, 0},
                       6,
                       kRax,
                       kRbp,
                       kNoReg,
                       1u << kRax | 1u << kRcx | 1u << kRdx | 1u << kRsi | 1u << kRdi | 0xfu << 8 |
                           1u << kStep0 | 1u << kStep1};

}  // namespace metaldoctor
