#include <fmt/format.h>

#include <bit>

#include "scanners/simulator/call_access.h"

namespace metaldoctor {
namespace {

constexpr std::uint64_t slot_size = 8;
constexpr unsigned x86_registers = 6, x86_vectors = 8;

}  // namespace

Call::Call(Process& owner, Trap& callee, unsigned shift)
    : process(owner), trap(callee), shift_(shift) {
  for (unsigned i = 0; i < owner.machine.argument_registers(); ++i)
    registers_[i] = owner.machine.argument(i);
}

std::uint64_t Call::arg(unsigned index) const {
  index += shift_;
  const unsigned registers = process.machine.argument_registers();
  if (index < registers) return registers_[index];
  // On x86_64 the return address lies on top.
  const std::uint64_t above = process.machine.arch() == SimArch::x86_64 ? slot_size : 0;
  const std::uint64_t slot = process.machine.sp() + above + (index - registers) * slot_size;
  return process.memory.load<std::uint64_t>(slot).value_or(0);
}

void Call::set_arg(unsigned index, std::uint64_t value) {
  registers_[index + shift_] = value;
  process.machine.set_argument(index + shift_, value);
}

double Call::real(unsigned index) const {
  return std::bit_cast<double>(process.machine.vector(index));
}

float Call::single(unsigned index) const {
  return std::bit_cast<float>(static_cast<std::uint32_t>(process.machine.vector(index)));
}

std::string Call::text(unsigned index) {
  auto text = process.memory.cstring(arg(index));
  if (!text) {
    fault("expected a string", arg(index));
    return {};
  }
  return *std::move(text);
}

void Call::returns(std::uint64_t value) {
  process.machine.set_result(value);
}

void Call::returns_real(double value) {
  process.machine.set_vector(0, std::bit_cast<std::uint64_t>(value));
}

void Call::returns_single(float value) {
  process.machine.set_vector(0, std::bit_cast<std::uint32_t>(value));
}

void Call::returns_pair(std::uint64_t first, std::uint64_t second) {
  process.machine.set_result(first);
  process.machine.set_second_result(second);
}

void Call::returns_structure(std::span<const std::uint64_t> words) {
  if (words.size() <= 2)
    return returns_pair(words.empty() ? 0 : words[0], words.size() < 2 ? 0 : words[1]);
  const bool arm = process.machine.arch() == SimArch::arm64;
  const std::uint64_t place = arm ? process.machine.structure_pointer() : registers_[0];
  for (std::size_t i = 0; i < words.size(); ++i) store(place + i * slot_size, words[i]);
  if (!arm) returns(place);
}

void Call::jump(std::uint64_t address) {
  process.machine.set_pc(address);
  jumped_ = true;
}

void Call::fault(std::string_view what, std::uint64_t address) {
  process.stop("bad-argument",
               fmt::format("{}: {} at {}", trap.name, what, process.name_of(address)),
               process.caller());
}

VarArgs VarArgs::of_call(Call& call, unsigned fixed) {
  VarArgs args(call.process);
  const Machine& machine = call.process.machine;
  args.stack_ = machine.sp();
  if (machine.arch() == SimArch::arm64) return args;
  args.registers_ = true;
  args.stack_ += slot_size;
  args.integers_ = fixed + call.shift_;
  return args;
}

VarArgs VarArgs::of_list(Process& process, std::uint64_t list) {
  VarArgs args(process);
  if (process.machine.arch() == SimArch::arm64) {
    args.stack_ = list;
    return args;
  }
  // struct { unsigned gp_offset, fp_offset; void *overflow_arg_area, *reg_save_area; }
  const Memory& memory = process.memory;
  args.integers_ = memory.load<std::uint32_t>(list).value_or(48) / slot_size;
  args.reals_ = (memory.load<std::uint32_t>(list + 4).value_or(176) - 48) / 16;
  args.stack_ = memory.load<std::uint64_t>(list + 8).value_or(0);
  args.save_area_ = memory.load<std::uint64_t>(list + 16).value_or(0);
  return args;
}

std::uint64_t VarArgs::slot() {
  const std::uint64_t value = process_->memory.load<std::uint64_t>(stack_).value_or(0);
  stack_ += slot_size;
  return value;
}

std::uint64_t VarArgs::integer() {
  const bool arm = process_->machine.arch() == SimArch::arm64;
  if (arm || integers_ >= x86_registers) return slot();
  const unsigned index = integers_++;
  if (registers_) return process_->machine.argument(index);
  return process_->memory.load<std::uint64_t>(save_area_ + index * slot_size).value_or(0);
}

double VarArgs::real() {
  const bool arm = process_->machine.arch() == SimArch::arm64;
  if (arm || reals_ >= x86_vectors) return std::bit_cast<double>(slot());
  const unsigned index = reals_++;
  if (registers_) return std::bit_cast<double>(process_->machine.vector(index));
  const std::uint64_t place = save_area_ + x86_registers * slot_size + index * 16;
  return process_->memory.load<double>(place).value_or(0);
}

}  // namespace metaldoctor
