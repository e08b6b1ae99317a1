#include "scanners/code/decoder.h"

#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCDisassembler/MCDisassembler.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/MCTargetOptions.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Triple.h>

#include <mutex>

#include "scanners/code/lifter.h"

namespace metaldoctor {
namespace {

/// What LLVM is asked for.
struct TargetRow {
  Arch::Kind kind;
  const char* triple;
  const char* cpu;
  const char* features;
  std::unique_ptr<Lifter> (*lifter)(const llvm::MCInstrInfo&, const llvm::MCRegisterInfo&);
};
constexpr TargetRow kTargets[] = {
    {Arch::Kind::arm64, "arm64-apple-macos13", "apple-m1", "+v8.5a", make_arm64_lifter},
    {Arch::Kind::x86_64, "x86_64-apple-macos13", "core-avx2", "", make_x86_lifter},
};

void initialise_targets() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64Disassembler();
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86Disassembler();
  });
}

}  // namespace

struct Decoder::Impl {
  std::unique_ptr<llvm::MCRegisterInfo> registers;
  std::unique_ptr<llvm::MCAsmInfo> assembly;
  std::unique_ptr<llvm::MCInstrInfo> instructions;
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget;
  std::unique_ptr<llvm::MCContext> context;
  std::unique_ptr<llvm::MCDisassembler> disassembler;
  std::unique_ptr<Lifter> lifter;
};

Decoder::Decoder(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Decoder::~Decoder() = default;
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;

Result<Decoder> Decoder::create(Arch::Kind kind) {
  initialise_targets();
  const TargetRow& row = kTargets[static_cast<std::size_t>(kind)];
  const llvm::Triple triple(row.triple);
  std::string error;
#if LLVM_VERSION_MAJOR >= 22
  const auto& name = triple;
#else
  const std::string& name = triple.str();
#endif
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(name, error);
  if (!target) return fail(Fault::bug, "decoder-missing", "LLVM", error);
  auto impl = std::make_unique<Impl>();
  impl->registers.reset(target->createMCRegInfo(name));
  impl->assembly.reset(target->createMCAsmInfo(*impl->registers, name, llvm::MCTargetOptions()));
  impl->instructions.reset(target->createMCInstrInfo());
  impl->subtarget.reset(target->createMCSubtargetInfo(name, row.cpu, row.features));
  impl->context = std::make_unique<llvm::MCContext>(triple, impl->assembly.get(),
                                                    impl->registers.get(), impl->subtarget.get());
  impl->disassembler.reset(target->createMCDisassembler(*impl->subtarget, *impl->context));
  if (!impl->disassembler)
    return fail(Fault::bug, "decoder-missing", "LLVM",
                std::string("LLVM has no disassembler for ") + row.triple);
  impl->lifter = row.lifter(*impl->instructions, *impl->registers);
  return Decoder(std::move(impl));
}

std::uint8_t Decoder::decode_one(Bytes code, std::uint64_t address, std::vector<Insn>& out) {
  llvm::MCInst inst;
  std::uint64_t size = 0;
  const llvm::ArrayRef<std::uint8_t> bytes(code.data(), std::min<std::size_t>(code.size(), 16));
  const auto status =
      impl_->disassembler->getInstruction(inst, size, bytes, address, llvm::nulls());
  const auto length = static_cast<std::uint8_t>(std::max<std::uint64_t>(size, 1));
  if (status != llvm::MCDisassembler::Fail) {
    impl_->lifter->lift(inst, address, length, out);
    return length;
  }
  Insn trap;
  trap.address = address;
  trap.op = Op::trap;
  trap.length = length;
  out.push_back(trap);
  return length;
}

std::vector<Insn> Decoder::decode(Bytes code, std::uint64_t address) {
  std::vector<Insn> out;
  out.reserve(code.size() / 4);
  for (std::uint64_t at = 0; at < code.size();)
    at += decode_one(code.subspan(at), address + at, out);
  return out;
}

}  // namespace metaldoctor
