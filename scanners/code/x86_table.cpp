#include "scanners/code/x86_table.h"

namespace metaldoctor::x86 {
namespace {

struct Suffix {
  std::string_view text;
  Form form;
};
constexpr std::array kSuffixes = {
    Suffix{"rr", Form::rr},   Suffix{"rr_REV", Form::rr}, Suffix{"ri", Form::ri},
    Suffix{"ri8", Form::ri},  Suffix{"ri32", Form::ri},   Suffix{"rm", Form::rm},
    Suffix{"mr", Form::mr},   Suffix{"mi", Form::mi},     Suffix{"mi8", Form::mi},
    Suffix{"mi32", Form::mi}, Suffix{"i8", Form::ai},     Suffix{"i16", Form::ai},
    Suffix{"i32", Form::ai},
};

struct Family {
  std::string_view name;  ///< followed by 8, 16, 32 or 64 and a suffix
  Work work;
  Op op = Op::other, op_imm = Op::other;
};
constexpr std::array kFamilies = {
    Family{"MOV", Work::move},
    Family{"ADD", Work::alu, Op::add_reg, Op::add},
    Family{"SUB", Work::alu, Op::sub_reg, Op::sub},
    Family{"AND", Work::alu, Op::and_reg, Op::and_imm},
    Family{"OR", Work::alu, Op::orr_reg, Op::orr_imm},
    Family{"XOR", Work::alu, Op::eor_reg, Op::eor_imm},
    Family{"ADC", Work::carry, Op::add_reg, Op::add},
    Family{"SBB", Work::carry, Op::sub_reg, Op::sub},
    Family{"CMP", Work::compare},
    Family{"TEST", Work::test},
    Family{"CMOV", Work::cmov},
};

struct Single {
  std::string_view name;
  Row row;
};
constexpr std::array kSingles = {
    Single{"LEA64r", {Work::lea, Form::rm}},
    Single{"LEA64_32r", {Work::lea, Form::rm, Op::other, Op::other, 4}},
    Single{"MOVZX32rr8", {Work::widen, Form::rr, Op::other, Op::other, 4, 1}},
    Single{"MOVZX32rr16", {Work::widen, Form::rr, Op::other, Op::other, 4, 2}},
    Single{"MOVZX64rr8", {Work::widen, Form::rr, Op::other, Op::other, 8, 1}},
    Single{"MOVZX32rm8", {Work::widen, Form::rm, Op::other, Op::other, 4, 1}},
    Single{"MOVZX32rm16", {Work::widen, Form::rm, Op::other, Op::other, 4, 2}},
    Single{"MOVSX32rr8", {Work::widen, Form::rr, Op::other, Op::other, 4, 1, true}},
    Single{"MOVSX64rr8", {Work::widen, Form::rr, Op::other, Op::other, 8, 1, true}},
    Single{"MOVSX64rr32", {Work::widen, Form::rr, Op::other, Op::other, 8, 4, true}},
    Single{"MOVSX32rm8", {Work::widen, Form::rm, Op::other, Op::other, 4, 1, true}},
    Single{"MOVSX64rm8", {Work::widen, Form::rm, Op::other, Op::other, 8, 1, true}},
    Single{"MOVSX64rm32", {Work::widen, Form::rm, Op::other, Op::other, 8, 4, true}},
    Single{"SHL32ri", {Work::shift, Form::ri, Op::ubfm, Op::add, 4}},
    Single{"SHL64ri", {Work::shift, Form::ri, Op::ubfm, Op::add, 8}},
    Single{"SHR32ri", {Work::shift, Form::ri, Op::ubfm, Op::sub, 4}},
    Single{"SHR64ri", {Work::shift, Form::ri, Op::ubfm, Op::sub, 8}},
    Single{"SAR64ri", {Work::shift, Form::ri, Op::sbfm, Op::sub, 8}},
    Single{"SHR32r1", {Work::shift, Form::r, Op::ubfm, Op::sub, 4}},
    Single{"SHR64r1", {Work::shift, Form::r, Op::ubfm, Op::sub, 8}},
    Single{"INC32r", {Work::step, Form::r, Op::other, Op::add, 4}},
    Single{"INC64r", {Work::step, Form::r, Op::other, Op::add, 8}},
    Single{"DEC32r", {Work::step, Form::r, Op::other, Op::sub, 4}},
    Single{"DEC64r", {Work::step, Form::r, Op::other, Op::sub, 8}},
    Single{"SETCCr", {Work::set, Form::r, Op::other, Op::other, 1}},
    Single{"SETCCm", {Work::set, Form::m, Op::other, Op::other, 1}},
    Single{"PUSH64r", {Work::push, Form::r}},
    Single{"PUSH64rmr", {Work::push, Form::r}},
    Single{"PUSH64i8", {Work::push, Form::i}},
    Single{"PUSH64i32", {Work::push, Form::i}},
    Single{"PUSH64rmm", {Work::push, Form::m}},
    Single{"POP64r", {Work::pop, Form::r}},
    Single{"POP64rmr", {Work::pop, Form::r}},
    Single{"LEAVE64", {Work::leave, Form::none}},
    Single{"CALL64pcrel32", {Work::call, Form::i}},
    Single{"CALL64r", {Work::call, Form::r}},
    Single{"CALL64m", {Work::call, Form::m}},
    Single{"JMP_1", {Work::jump, Form::i}},
    Single{"JMP_4", {Work::jump, Form::i}},
    Single{"JMP64r", {Work::jump, Form::r}},
    Single{"JMP64m", {Work::jump, Form::m}},
    Single{"JCC_1", {Work::jump_if, Form::i}},
    Single{"JCC_4", {Work::jump_if, Form::i}},
    Single{"RET64", {Work::ret, Form::none}},
    Single{"RETI64", {Work::ret, Form::none}},
    Single{"TRAP", {Work::trap, Form::none}},
    Single{"INT3", {Work::trap, Form::none}},
    Single{"HLT", {Work::trap, Form::none}},
    Single{"NOOP", {Work::nop, Form::none}},
    Single{"NOOPL", {Work::nop, Form::none}},
    Single{"NOOPW", {Work::nop, Form::none}},
    Single{"ENDBR64", {Work::nop, Form::none}},
};

struct RegisterName {
  std::string_view name;
  std::uint8_t number;
};
constexpr std::array kRegisters = {
    RegisterName{"RAX", kRax}, RegisterName{"EAX", kRax}, RegisterName{"AX", kRax},
    RegisterName{"AL", kRax},  RegisterName{"RCX", kRcx}, RegisterName{"ECX", kRcx},
    RegisterName{"CX", kRcx},  RegisterName{"CL", kRcx},  RegisterName{"RDX", kRdx},
    RegisterName{"EDX", kRdx}, RegisterName{"DX", kRdx},  RegisterName{"DL", kRdx},
    RegisterName{"RBX", kRbx}, RegisterName{"EBX", kRbx}, RegisterName{"BX", kRbx},
    RegisterName{"BL", kRbx},  RegisterName{"RSP", kSp},  RegisterName{"ESP", kSp},
    RegisterName{"RBP", kRbp}, RegisterName{"EBP", kRbp}, RegisterName{"BP", kRbp},
    RegisterName{"BPL", kRbp}, RegisterName{"RSI", kRsi}, RegisterName{"ESI", kRsi},
    RegisterName{"SI", kRsi},  RegisterName{"SIL", kRsi}, RegisterName{"RDI", kRdi},
    RegisterName{"EDI", kRdi}, RegisterName{"DI", kRdi},  RegisterName{"DIL", kRdi},
};
constexpr std::array kHighBytes = {RegisterName{"AH", kRax}, RegisterName{"BH", kRbx},
                                   RegisterName{"CH", kRcx}, RegisterName{"DH", kRdx}};
}  // namespace

std::uint8_t register_of(std::string_view name) {
  if (name == "RIP") return kRip;
  for (const RegisterName& row : kRegisters)
    if (row.name == name) return row.number;
  for (const RegisterName& row : kHighBytes)
    if (row.name == name) return row.number + kHighByte;
  if (name.size() < 2 || name[0] != 'R' || name[1] < '0' || name[1] > '9') return kNoReg;
  unsigned number = 0;
  std::size_t at = 1;
  for (; at < name.size() && name[at] >= '0' && name[at] <= '9'; ++at)
    number = number * 10 + static_cast<unsigned>(name[at] - '0');
  const std::string_view rest = name.substr(at);  // r8, r8d, r8w, r8b
  const bool part = rest.empty() || rest == "D" || rest == "W" || rest == "B";
  return part && number >= 8 && number <= 15 ? static_cast<std::uint8_t>(number) : kNoReg;
}

std::unordered_map<std::string, Row> rows() {
  std::unordered_map<std::string, Row> rows;
  for (const Single& single : kSingles) rows.emplace(single.name, single.row);
  for (const Family& family : kFamilies)
    for (const unsigned bits : {8u, 16u, 32u, 64u})
      for (const Suffix& suffix : kSuffixes) {
        const std::string name =
            std::string(family.name) + std::to_string(bits) + std::string(suffix.text);
        rows.emplace(name, Row{family.work, suffix.form, family.op, family.op_imm,
                               static_cast<std::uint8_t>(bits / 8)});
      }
  return rows;
}

namespace {

struct StoreSize {
  std::string_view part;  ///< of the name
  std::uint8_t bytes;
};
// The first that matches counts. Y and Z256 are 256-bit vectors, Z alone 512-bit ones.
constexpr std::array kStoreSizes = {
    StoreSize{"Z256", 32},     StoreSize{"Z128", 16},   StoreSize{"PSYmr", 32},
    StoreSize{"PDYmr", 32},    StoreSize{"DQAYmr", 32}, StoreSize{"DQUYmr", 32},
    StoreSize{"F128mr", 16},   StoreSize{"I128mr", 16}, StoreSize{"PQI2QI", 8},
    StoreSize{"PDI2DI", 4},    StoreSize{"MOVSD", 8},   StoreSize{"MOVSS", 4},
    StoreSize{"MOVLP", 8},     StoreSize{"MOVHP", 8},   StoreSize{"PEXTRB", 1},
    StoreSize{"PEXTRW", 2},    StoreSize{"PEXTRD", 4},  StoreSize{"PEXTRQ", 8},
    StoreSize{"EXTRACTPS", 4}, StoreSize{"Zmr", 64},    StoreSize{"64m", 8},
    StoreSize{"32m", 4},       StoreSize{"16m", 2},     StoreSize{"8m", 1},
};

}  // namespace

std::uint8_t stored_bytes(std::string_view opcode) {
  for (const StoreSize& row : kStoreSizes)
    if (opcode.find(row.part) != std::string_view::npos) return row.bytes;
  return 16;
}

}  // namespace metaldoctor::x86
