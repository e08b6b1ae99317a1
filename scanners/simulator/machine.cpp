#include "scanners/simulator/machine.h"

#include <fmt/format.h>
#include <unicorn/unicorn.h>

#include <array>

namespace metaldoctor {
namespace {

constexpr std::size_t max_walk = std::size_t{1} << 20;
constexpr std::uint64_t blocks_between_clocks = 1 << 14;
/// A page of zeros for what code finds through the thread register.
constexpr std::uint64_t thread_page = guest::stack + guest::stack_size + 0x10000;

constexpr std::array<int, 8> arm_arguments = {UC_ARM64_REG_X0, UC_ARM64_REG_X1, UC_ARM64_REG_X2,
                                              UC_ARM64_REG_X3, UC_ARM64_REG_X4, UC_ARM64_REG_X5,
                                              UC_ARM64_REG_X6, UC_ARM64_REG_X7};
constexpr std::array<int, 6> x86_arguments = {UC_X86_REG_RDI, UC_X86_REG_RSI, UC_X86_REG_RDX,
                                              UC_X86_REG_RCX, UC_X86_REG_R8,  UC_X86_REG_R9};

int protection_of(const Protection& protection) {
  return (protection.read ? UC_PROT_READ : 0) | (protection.write ? UC_PROT_WRITE : 0) |
         (protection.execute ? UC_PROT_EXEC : 0);
}

/// Instructions whose result depends on the host: rdtsc, rdtscp, rdrand, rdseed.
bool reads_clock_x86(std::span<const std::uint8_t> code) {
  std::size_t at = 0;
  while (at < code.size() && (code[at] == 0x66 || (code[at] & 0xf0) == 0x40)) ++at;
  if (code.size() < at + 2 || code[at] != 0x0f) return false;
  const std::uint8_t second = code[at + 1];
  if (second == 0x31) return true;
  if (code.size() < at + 3) return false;
  const std::uint8_t third = code[at + 2];
  if (second == 0x01) return third == 0xf9;
  return second == 0xc7 && third >= 0xf0;
}

}  // namespace

struct Machine::Engine {
  uc_engine* uc = nullptr;
  uc_context* fresh = nullptr;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> mapped;
  std::array<std::uint8_t, Memory::page> thread{};

  std::uint64_t get(int id) const {
    std::uint64_t value = 0;
    uc_reg_read(uc, id, &value);
    return value;
  }
  void set(int id, std::uint64_t value) { uc_reg_write(uc, id, &value); }
};

/// The engine's C callbacks; `self` is the Machine.
struct Hooks {
  static void block(uc_engine*, std::uint64_t address, std::uint32_t size, void* self) {
    static_cast<Machine*>(self)->reached_block(address, size);
  }
  static void code(uc_engine*, std::uint64_t address, std::uint32_t size, void* self) {
    static_cast<Machine*>(self)->reached_instruction(address, size);
  }
  static void store(uc_engine*, uc_mem_type, std::uint64_t address, int size, std::int64_t,
                    void* self) {
    static_cast<Machine*>(self)->memory_->mark_written(address, size);
  }
  static bool fault(uc_engine* uc, uc_mem_type type, std::uint64_t address, int size, std::int64_t,
                    void* self) {
    if (static_cast<Machine*>(self)->grow_stack(address)) return true;
    Machine::Exit exit;
    using Kind = Machine::Exit::Kind;
    const bool write = type == UC_MEM_WRITE_UNMAPPED || type == UC_MEM_WRITE_PROT;
    const bool fetch = type == UC_MEM_FETCH_UNMAPPED || type == UC_MEM_FETCH_PROT;
    exit.kind = fetch ? Kind::fetch : write ? Kind::write : Kind::read;
    exit.address = address;
    exit.size = static_cast<std::uint64_t>(size);
    exit.mapped =
        type == UC_MEM_WRITE_PROT || type == UC_MEM_READ_PROT || type == UC_MEM_FETCH_PROT;
    stop(uc, self, exit, /*emulation=*/false);
    return false;
  }
  static void interrupt(uc_engine* uc, std::uint32_t number, void* self) {
    constexpr std::uint32_t arm_undefined = 1, arm_svc = 2, arm_breakpoint = 7;
    constexpr std::uint32_t x86_breakpoint = 3, x86_bounds = 0x80;
    using Kind = Machine::Exit::Kind;
    const bool arm = static_cast<Machine*>(self)->arch() == SimArch::arm64;
    Machine::Exit exit;
    exit.kind = Kind::instruction;
    if (number == (arm ? arm_breakpoint : x86_breakpoint)) exit.kind = Kind::breakpoint;
    if (number == (arm ? arm_svc : x86_bounds)) exit.kind = Kind::system_call;
    exit.text = arm && number == arm_undefined ? "undefined instruction"
                                               : fmt::format("exception {}", number);
    stop(uc, self, exit, true);
  }
  static void x86_syscall(uc_engine* uc, void* self) {
    Machine::Exit exit;
    exit.kind = Machine::Exit::Kind::system_call;
    stop(uc, self, exit, true);
  }
  /// System registers: the counters give a fixed time, random numbers are refused.
  static std::uint32_t arm_mrs(uc_engine* uc, uc_arm64_reg target, const uc_arm64_cp_reg* from,
                               void* self) {
    const bool timer = from->op0 == 3 && from->op1 == 3 && from->crn == 14;
    const bool random = from->op0 == 3 && from->op1 == 3 && from->crn == 2 && from->crm == 4;
    if (random) {
      Machine::Exit exit;
      exit.kind = Machine::Exit::Kind::clock;
      exit.text = "a random number instruction";
      stop(uc, self, exit, true);
      return 1;
    }
    if (!timer) return 0;
    constexpr std::uint64_t frequency = 24'000'000, now = frequency * 1000;
    const std::uint64_t value = from->crm == 0 && from->op2 == 0 ? frequency : now;
    uc_reg_write(uc, target, &value);
    return 1;
  }
  static void stop(uc_engine* uc, void* self, Machine::Exit exit, bool emulation) {
    auto& machine = *static_cast<Machine*>(self);
    if (!machine.pending_) machine.pending_ = std::move(exit);
    if (emulation) uc_emu_stop(uc);
  }
};

Machine::Machine(SimArch arch) : arch_(arch), engine_(std::make_unique<Engine>()) {}

Machine::~Machine() {
  if (engine_->fresh) uc_context_free(engine_->fresh);
  if (engine_->uc) uc_close(engine_->uc);
}

Result<std::unique_ptr<Machine>> Machine::open(SimArch arch) {
  std::unique_ptr<Machine> machine(new Machine(arch));
  Engine& engine = *machine->engine_;
  const bool arm = arch == SimArch::arm64;
  uc_err error =
      uc_open(arm ? UC_ARCH_ARM64 : UC_ARCH_X86, arm ? UC_MODE_ARM : UC_MODE_64, &engine.uc);
  // The default model (A72) knows none of the v8.3 and later instructions that Apple's
  // compiler emits for macOS (ldapr and friends).
  if (error == UC_ERR_OK && arm) error = uc_ctl_set_cpu_model(engine.uc, UC_CPU_ARM64_MAX);
  const auto hook = [&](int type, auto* function, auto... more) {
    uc_hook handle = 0;
    if (error == UC_ERR_OK)
      error = uc_hook_add(engine.uc, &handle, type, reinterpret_cast<void*>(function),
                          machine.get(), 1, 0, more...);
  };
  hook(UC_HOOK_MEM_INVALID, &Hooks::fault);
  hook(UC_HOOK_BLOCK, &Hooks::block);
  hook(UC_HOOK_MEM_WRITE, &Hooks::store);
  hook(UC_HOOK_INTR, &Hooks::interrupt);
  if (arm) {
    hook(UC_HOOK_INSN, &Hooks::arm_mrs, UC_ARM64_INS_MRS);
  } else {
    hook(UC_HOOK_CODE, &Hooks::code);
    hook(UC_HOOK_INSN, &Hooks::x86_syscall, UC_X86_INS_SYSCALL);
  }
  if (error == UC_ERR_OK) error = uc_context_alloc(engine.uc, &engine.fresh);
  if (error == UC_ERR_OK) error = uc_context_save(engine.uc, engine.fresh);
  if (error != UC_ERR_OK)
    return fail(Fault::bug, "simulator-engine", "Unicorn", uc_strerror(error));
  return machine;
}

Result<void> Machine::start(Memory& memory, const SimBudget& budget,
                            std::function<std::uint64_t()> milliseconds) {
  finish();
  memory_ = &memory;
  budget_ = budget;
  milliseconds_ = std::move(milliseconds);
  started_ = milliseconds_ ? milliseconds_() : 0;
  instructions_ = block_count_ = 0;
  exposed_.fill(0);
  block_ids_.clear();
  recent_.fill({});
  blocks_.clear();
  walk_.clear();
  watches_.clear();
  uc_context_restore(engine_->uc, engine_->fresh);
  if (arch_ == SimArch::arm64) {
    engine_->thread.fill(0);
    if (uc_mem_map_ptr(engine_->uc, thread_page, Memory::page, UC_PROT_READ | UC_PROT_WRITE,
                       engine_->thread.data()) == UC_ERR_OK)
      engine_->mapped.emplace_back(thread_page, Memory::page);
    engine_->set(UC_ARM64_REG_TPIDRRO_EL0, thread_page);
  }
  for (const Region& region : memory.regions())
    if (region.kind == Region::Kind::image && !map(region, 0, region.size))
      return fail(Fault::bug, "simulator-engine", fmt::format("{:#x}", region.address),
                  "the engine cannot map this region");
  return {};
}

bool Machine::map(const Region& region, std::uint64_t from, std::uint64_t to) {
  if (uc_mem_map_ptr(engine_->uc, region.address + from, to - from,
                     protection_of(region.protection), region.host + from) != UC_ERR_OK)
    return false;
  engine_->mapped.emplace_back(region.address + from, to - from);
  return true;
}

bool Machine::expose(Region::Kind kind, std::uint64_t size) {
  std::uint64_t& exposed = exposed_[static_cast<std::size_t>(kind)];
  if (size <= exposed) return true;
  constexpr std::uint64_t step = std::uint64_t{256} << 10;
  const Region* region = memory_->region(kind == Region::Kind::heap ? guest::heap : guest::objects);
  if (!region || size > region->size) return false;
  const std::uint64_t wanted = std::max((size + step - 1) / step * step, 2 * exposed);
  const std::uint64_t end = std::min(wanted, region->size);
  if (!map(*region, exposed, end)) return false;
  exposed = end;
  return true;
}

bool Machine::grow_stack(std::uint64_t address) {
  std::uint64_t& exposed = exposed_[static_cast<std::size_t>(Region::Kind::stack)];
  const Region* stack = memory_->region(guest::stack);
  if (!stack || address - stack->address >= stack->size - exposed) return false;
  constexpr std::uint64_t step = std::uint64_t{128} << 10;
  const std::uint64_t low = (address - stack->address) / step * step;
  if (!map(*stack, low, stack->size - exposed)) return false;
  exposed = stack->size - low;
  return true;
}

void Machine::finish() {
  for (const auto& [address, size] : engine_->mapped) uc_mem_unmap(engine_->uc, address, size);
  engine_->mapped.clear();
  memory_ = nullptr;
}

void Machine::reached_block(std::uint64_t address, std::uint32_t size) {
  if (arch_ == SimArch::arm64) instructions_ += size / 4;
  RecentBlock& recent = recent_[address / 4 % recent_.size()];
  if (recent.address != address) {
    const auto [id, fresh] = block_ids_.try_emplace(address, blocks_.size());
    if (fresh) blocks_.push_back(address);
    recent = {address, id->second};
  }
  if (walk_.size() < max_walk) walk_.push_back(recent.id);
  if (!watches_.empty() && watches_.back().address == address) returned_to(address, sp());
  Exit exit;
  exit.kind = Exit::Kind::budget_instructions;
  if (instructions_ <= budget_.instructions) {
    if (++block_count_ % blocks_between_clocks || !milliseconds_) return;
    if (milliseconds_() - started_ <= budget_.milliseconds) return;
    exit.kind = Exit::Kind::budget_time;
  }
  Hooks::stop(engine_->uc, this, exit, true);
}

void Machine::reached_instruction(std::uint64_t address, std::uint32_t size) {
  ++instructions_;
  std::array<std::uint8_t, 4> code{};
  const auto bytes = std::span(code).first(std::min<std::size_t>(size, code.size()));
  if (!memory_->read(address, bytes) || !reads_clock_x86(bytes)) return;
  Exit exit;
  exit.kind = Exit::Kind::clock;
  exit.text = "rdtsc, rdrand or rdseed";
  Hooks::stop(engine_->uc, this, exit, true);
}

Machine::Exit Machine::run() {
  pending_.reset();
  // `until` is an address that no program reaches.
  const uc_err error = uc_emu_start(engine_->uc, pc(), ~std::uint64_t{0}, 0, 0);
  Exit exit;
  if (pending_) {
    exit = *std::move(pending_);
  } else if (error == UC_ERR_OK) {
    exit.kind = Exit::Kind::halted;
  } else if (error == UC_ERR_INSN_INVALID || error == UC_ERR_EXCEPTION) {
    exit.kind = Exit::Kind::instruction;
    exit.text = uc_strerror(error);
  } else {
    exit.text = uc_strerror(error);
  }
  exit.pc = pc();
  return exit;
}

std::uint64_t Machine::pc() const {
  return engine_->get(arch_ == SimArch::arm64 ? int{UC_ARM64_REG_PC} : int{UC_X86_REG_RIP});
}
std::uint64_t Machine::sp() const {
  return engine_->get(arch_ == SimArch::arm64 ? int{UC_ARM64_REG_SP} : int{UC_X86_REG_RSP});
}
void Machine::set_pc(std::uint64_t value) {
  engine_->set(arch_ == SimArch::arm64 ? int{UC_ARM64_REG_PC} : int{UC_X86_REG_RIP}, value);
}
void Machine::set_sp(std::uint64_t value) {
  engine_->set(arch_ == SimArch::arm64 ? int{UC_ARM64_REG_SP} : int{UC_X86_REG_RSP}, value);
}
std::uint64_t Machine::argument(unsigned index) const {
  return engine_->get(arch_ == SimArch::arm64 ? arm_arguments[index] : x86_arguments[index]);
}
void Machine::set_argument(unsigned index, std::uint64_t value) {
  engine_->set(arch_ == SimArch::arm64 ? arm_arguments[index] : x86_arguments[index], value);
}
std::uint64_t Machine::vector(unsigned index) const {
  // D registers are consecutive in the engine's numbering; XMM registers are 16 bytes wide.
  if (arch_ == SimArch::arm64) return engine_->get(UC_ARM64_REG_D0 + static_cast<int>(index));
  std::array<std::uint64_t, 2> wide{};
  uc_reg_read(engine_->uc, UC_X86_REG_XMM0 + static_cast<int>(index), wide.data());
  return wide[0];
}
void Machine::set_vector(unsigned index, std::uint64_t bits) {
  if (arch_ == SimArch::arm64) return engine_->set(UC_ARM64_REG_D0 + static_cast<int>(index), bits);
  const std::array<std::uint64_t, 2> wide = {bits, 0};
  uc_reg_write(engine_->uc, UC_X86_REG_XMM0 + static_cast<int>(index), wide.data());
}
std::uint64_t Machine::result() const {
  return engine_->get(arch_ == SimArch::arm64 ? int{UC_ARM64_REG_X0} : int{UC_X86_REG_RAX});
}
void Machine::set_result(std::uint64_t value) {
  engine_->set(arch_ == SimArch::arm64 ? int{UC_ARM64_REG_X0} : int{UC_X86_REG_RAX}, value);
}
void Machine::set_second_result(std::uint64_t value) {
  engine_->set(arch_ == SimArch::arm64 ? int{UC_ARM64_REG_X1} : int{UC_X86_REG_RDX}, value);
}
std::uint64_t Machine::structure_pointer() const {
  return engine_->get(arch_ == SimArch::arm64 ? int{UC_ARM64_REG_X8} : int{UC_X86_REG_RDI});
}

std::uint64_t Machine::general(unsigned number) const {
  if (arch_ != SimArch::arm64 || number > 30) return 0;
  // X29 and X30 come before X0 in the engine's numbering.
  if (number >= 29) return engine_->get(UC_ARM64_REG_X29 + static_cast<int>(number - 29));
  return engine_->get(UC_ARM64_REG_X0 + static_cast<int>(number));
}

std::uint64_t Machine::return_address(const Memory& memory) const {
  if (arch_ == SimArch::arm64) return engine_->get(UC_ARM64_REG_LR);
  return memory.load<std::uint64_t>(sp()).value_or(0);
}

void Machine::leave(const Memory& memory) {
  const std::uint64_t to = return_address(memory);
  if (arch_ == SimArch::x86_64) set_sp(sp() + 8);
  set_pc(to);
}

bool Machine::enter(Memory& memory, std::uint64_t function, std::uint64_t return_to) {
  constexpr std::uint64_t alignment = 16;
  std::uint64_t stack = sp() & ~(alignment - 1);
  if (arch_ == SimArch::arm64) {
    engine_->set(UC_ARM64_REG_LR, return_to);
  } else {
    stack -= 8;
    if (!memory.store(stack, return_to)) return false;
  }
  set_sp(stack);
  set_pc(function);
  return true;
}

Machine::Saved Machine::save() const {
  return {pc(), sp(), arch_ == SimArch::arm64 ? engine_->get(UC_ARM64_REG_LR) : 0};
}

void Machine::restore(const Saved& saved) {
  set_pc(saved.pc);
  set_sp(saved.sp);
  if (arch_ == SimArch::arm64) engine_->set(UC_ARM64_REG_LR, saved.link);
}

void Machine::watch_return(std::uint64_t address, std::uint64_t stack,
                           std::function<void()> visit) {
  watches_.push_back({address, stack, std::move(visit)});
}

bool Machine::returned_to(std::uint64_t address, std::uint64_t stack) {
  // What a non-local exit skipped lies above and will never return.
  for (std::size_t i = watches_.size(); i-- > 0;) {
    if (watches_[i].address != address || watches_[i].sp != stack) continue;
    const auto visit = std::move(watches_[i].visit);
    watches_.resize(i);
    visit();
    return true;
  }
  return false;
}

}  // namespace metaldoctor
