#include "scanners/code/decoder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace metaldoctor {
namespace {

/// The fields that matter, "rd rn rm imm target" with "-" for no register.
std::string fields(const Insn& insn) {
  const auto reg = [](std::uint8_t r) {
    return r == kNoReg ? std::string("-") : fmt::format("{}", r);
  };
  return fmt::format("{} {} {} {} {} {:#x}", static_cast<int>(insn.op), reg(insn.rd), reg(insn.rn),
                     reg(insn.rm), insn.imm, insn.target);
}

TEST(Decoder, ReadsWhatTheTracerNeeds) {
  auto decoder = Decoder::create(Arch::Kind::arm64);
  ASSERT_TRUE(decoder) << decoder.error().what;
  struct Case {
    const char* text;
    std::uint32_t word;
    Op op;
    std::string fields;
  };
  const Case cases[] = {
      {"mov w2, #1007", 0x52807de2, Op::mov_wide, "2 - - 1007 0x0"},
      {"movk w2, #3, lsl #16", 0x72a00062, Op::mov_keep, "2 - - 3 0x0"},
      {"bl +0x10", 0x94000004, Op::bl, "- - - 0 0x1010"},
      {"b -4", 0x17ffffff, Op::b, "- - - 0 0xffc"},
      {"cbnz w0, +8", 0x35000040, Op::cbnz, "- 0 - 0 0x1008"},
      {"tbz w0, #3, +8", 0x36180040, Op::tbz, "- 0 - 3 0x1008"},
      {"b.ne +8", 0x54000041, Op::b_cond, "- - - 0 0x1008"},
      {"adrp x1, 0x2000", 0xb0000001, Op::adrp, "1 - - 0 0x2000"},
      {"ldr x1, [x1, #8]", 0xf9400421, Op::load, "1 1 - 8 0x0"},
      {"ldrb w8, [x19, #0x148]", 0x39452268, Op::load, "8 19 - 328 0x0"},
      {"strb wzr, [x19, #0x14c]", 0x3905327f, Op::store, "32 19 - 332 0x0"},
      {"stp x29, x30, [sp, #-16]!", 0xa9bf7bfd, Op::store_pair_pre, "29 31 - -16 0x0"},
      {"ldp x29, x30, [sp], #16", 0xa8c17bfd, Op::load_pair_post, "29 31 - 16 0x0"},
      {"orr w8, w8, w0", 0x2a000108, Op::orr_reg, "8 8 0 0 0x0"},
      {"cmp x0, #2", 0xf100081f, Op::sub, "32 0 - 2 0x0"},
      {"and w0, w0, #0xff", 0x12001c00, Op::and_imm, "0 0 - 255 0x0"},
      {"eor w2, w0, #1", 0x52000002, Op::eor_imm, "2 0 - 1 0x0"},
      {"csel w8, w22, wzr, eq", 0x1a9f02c8, Op::csel, "8 22 32 0 0x0"},
      {"br x16", 0xd61f0200, Op::br, "- 16 - 0 0x0"},
      {"blr x8", 0xd63f0100, Op::blr, "- 8 - 0 0x0"},
      {"ret", 0xd65f03c0, Op::ret, "- - - 0 0x0"},
      {"sxtw x8, w19", 0x93407e68, Op::sbfm, "8 19 - 0 0x0"},
      {"ldr x0, +8", 0x58000040, Op::load_literal, "0 - - 0 0x1008"},
      {"udf", 0x00000000, Op::trap, "- - - 0 0x0"},
      {"not an instruction", 0xffffffff, Op::trap, "- - - 0 0x0"},
  };
  for (const Case& one : cases) {
    std::vector<Insn> steps;
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&one.word);
    EXPECT_EQ(decoder->decode_one({bytes, 4}, 0x1000, steps), 4u) << one.text;
    ASSERT_EQ(steps.size(), 1u) << one.text;
    const Insn insn = steps[0];
    EXPECT_EQ(fields(insn), fmt::format("{} {}", static_cast<int>(one.op), one.fields)) << one.text;
  }
}

}  // namespace
}  // namespace metaldoctor
