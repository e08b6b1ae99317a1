#include "scanners/simulator/process.h"

#include <fmt/format.h>

#include <algorithm>

#include "scanners/simulator/foundation.h"

namespace metaldoctor {
namespace {

constexpr std::uint64_t trap_size = 16;
/// Return addresses of calls that a program makes lie above the shared cache. Both start with a
/// page that holds a Mach-O header: what dladdr gives as their base.
constexpr std::uint64_t program_area = 0x4000;
constexpr std::uint64_t program_start = guest::traps + guest::traps_size - program_area;
constexpr std::uint64_t program_return = program_start + Memory::page;
constexpr std::uint64_t first_trap = guest::traps + Memory::page;
constexpr std::size_t max_traps = (program_start - first_trap) / trap_size;
constexpr std::uint64_t null_page = 0x4000;
/// What imports read and write is held against the instruction budget at this rate.
constexpr std::uint64_t bytes_an_instruction = 16;
constexpr std::string_view class_prefix = "_OBJC_CLASS_$_";
constexpr std::string_view metaclass_prefix = "_OBJC_METACLASS_$_";

bool in_traps(std::uint64_t address) {
  return address - guest::traps < guest::traps_size;
}

}  // namespace

std::string_view library_path(SystemLibrary library) {
  constexpr std::string_view paths[] = {
      "/usr/lib/libSystem.B.dylib", "/usr/lib/libobjc.A.dylib",
      "/System/Library/Frameworks/Foundation.framework/Versions/C/Foundation",
      "/System/Library/Frameworks/Metal.framework/Versions/A/Metal", "/simulated/program"};
  return paths[static_cast<std::size_t>(library)];
}

Process::Process(const Tables& all, const RuntimeTables& own, const SimRequest& asked,
                 const SimRun& one, ImageSet& set, Machine& engine)
    : tables(all),
      runtime(own),
      request(asked),
      run(one),
      images(set),
      machine(engine),
      heap(asked.budget.memory),
      objc(memory),
      recorder(asked.budget),
      devices(*this),
      environment(asked.environment) {
  for (const auto& [name, value] : one.environment) environment[name] = value;
  for (std::size_t i = 0; i < return_traps_.size(); ++i) {
    Trap trap;
    trap.library = static_cast<SystemLibrary>(i);
    trap.name = leaf_name(library_path(trap.library));
    trap.is_return = true;
    if (trap.library == SystemLibrary::program) {
      program_trap_ = std::move(trap);
      return_traps_[i] = program_return;
    } else {
      return_traps_[i] = add_trap(std::move(trap));
    }
  }
}

/// As much of a mach_header_64 as programs look at: its file type and flags.
bool Process::map_header(std::uint64_t address, std::uint32_t type, std::uint32_t flags) {
  const bool arm = machine.arch() == SimArch::arm64;
  const std::array<std::uint32_t, 8> header = {
      0xfeedfacf, arm ? 0x0100000cu : 0x01000007u, arm ? 0u : 3u, type, 0, 0, flags, 0};
  std::uint8_t* at =
      memory.map_zero(address, Memory::page, {true, false, false}, Region::Kind::image);
  if (at) std::memcpy(at, header.data(), sizeof header);
  return at;
}

Result<void> Process::load(const SimHost& host) {
  const auto no_memory = [] {
    return fail(Fault::input, "simulator-memory", "request", "the host gives no memory");
  };
  if (auto mapped = images.map(memory); !mapped) return mapped;
  using Kind = Region::Kind;
  if (!memory.map_zero(guest::heap, request.budget.memory, {true, true, false}, Kind::heap) ||
      !memory.map_zero(guest::objects, guest::objects_size, {true, true, false}, Kind::objects) ||
      !memory.map_zero(guest::stack, guest::stack_size, {true, true, false}, Kind::stack))
    return no_memory();
  constexpr std::uint32_t dylib = 6, executable = 2, in_shared_cache = 0x80000000;
  if (!map_header(guest::traps, dylib, in_shared_cache) ||
      !map_header(program_start, executable, 0))
    return no_memory();
  errno_address = objc.reserve(8);
  register_foundation(*this);
  if (request.metal == SimMetal::start ||
      (request.metal == SimMetal::linked && images.links("Metal")))
    devices.load_metal();
  auto bound = images.fix_up(
      memory, [&](const SimLoaded& image, const Import& import) { return bind(image, import); });
  if (!bound) return bound;
  for (const SimLoaded& image : images.images())
    for (const SelectorSlot& slot : image.selectors)
      memory.store(image.address(slot.address), objc.selector(slot.selector), true);
  for (const SimLoaded& image : images.images()) register_program_classes(*this, image);
  if (objc.full()) return no_memory();
  if (auto started = machine.start(memory, request.budget, host.milliseconds); !started)
    return started;
  constexpr std::uint64_t above_main = 0x10000;  // where argv and the environment would lie
  machine.set_sp(guest::stack + guest::stack_size - above_main);
  return {};
}

std::uint64_t Process::bind(const SimLoaded& image, const Import& import) {
  const SimLoaded* library = images.library_of(image, import);
  if (library)
    if (const auto found = images.exported(import.name, library)) return *found;
  const auto& dylibs = image.image->dylibs();
  const bool system = import.library >= 1 &&
                      static_cast<std::size_t>(import.library) <= dylibs.size() &&
                      is_system_library(dylibs[static_cast<std::size_t>(import.library) - 1].path);
  if (!system)
    if (const auto found = images.exported(import.name, nullptr)) return *found;
  if (import.weak && !known_symbol(import.name)) return 0;
  return symbol_address(import.name);
}

std::uint64_t Process::known_symbol(std::string_view name) {
  if (const auto found = symbols_.find(name); found != symbols_.end()) {
    const Trap* trap = trap_at(found->second);
    return trap && !trap->function ? 0 : found->second;
  }
  std::uint64_t address = 0;
  if (const HostFunction* function = host_function(name)) {
    Trap trap;
    trap.name = name;
    trap.function = function;
    if (name.starts_with("_objc_") || name.starts_with("_class_"))
      trap.library = SystemLibrary::objc;
    if (name.starts_with("_MTL")) trap.library = SystemLibrary::metal;
    address = add_trap(std::move(trap));
  } else if (const HostDatum* datum = host_datum(name)) {
    address = make_datum(*this, *datum);
  } else if (name.starts_with(class_prefix)) {
    if (ObjcClass* cls = objc.find(name.substr(class_prefix.size()))) return cls->address;
  } else if (name.starts_with(metaclass_prefix)) {
    if (ObjcClass* cls = objc.find(name.substr(metaclass_prefix.size()))) return cls->meta;
  }
  if (address) symbols_.emplace(name, address);
  return address;
}

std::uint64_t Process::symbol_address(std::string_view name) {
  if (const std::uint64_t known = known_symbol(name)) return known;
  if (const auto found = symbols_.find(name); found != symbols_.end()) return found->second;
  for (const std::string_view prefix : {class_prefix, metaclass_prefix}) {
    if (!name.starts_with(prefix)) continue;
    // A class of some framework: an empty one, whose messages are answered by their types.
    ObjcClass& cls = objc.ensure(name.substr(prefix.size()), objc.find("NSObject"), "Foundation");
    return prefix == class_prefix ? cls.address : cls.meta;
  }
  Trap trap;
  trap.name = name;
  const std::uint64_t address = add_trap(std::move(trap));
  symbols_.emplace(name, address);
  return address;
}

std::uint64_t Process::add_trap(Trap trap) {
  if (traps_.size() >= max_traps) return 0;
  traps_.push_back(std::move(trap));
  return first_trap + (traps_.size() - 1) * trap_size;
}

Trap* Process::trap_at(std::uint64_t address) {
  const std::uint64_t offset = address - first_trap;
  if (address == program_return) return &program_trap_;
  if (!in_traps(address) || offset % trap_size || offset / trap_size >= traps_.size())
    return nullptr;
  return &traps_[offset / trap_size];
}

std::pair<std::uint64_t, std::uint64_t> Process::shared_cache() {
  return {guest::traps, guest::traps_size - program_area};
}

std::uint64_t Process::header_of(std::uint64_t trap) {
  return trap < program_start ? guest::traps : program_start;
}

void Process::stop(std::string kind, std::string text, std::uint64_t where) {
  if (!stop_) stop_ = SimStop{std::move(kind), std::move(text), name_of(where)};
}

void Process::exit(int status) {
  exit_status_ = status;
  stop("exit", fmt::format("the program exited with status {}", status), caller());
}

std::optional<std::uint64_t> Process::call(std::uint64_t function,
                                           std::span<const std::uint64_t> arguments,
                                           SystemLibrary library) {
  if (stopped()) return std::nullopt;
  if (depth_ >= request.budget.call_depth) {
    stop("budget-call-depth", fmt::format("more than {} calls from the host are nested", depth_),
         function);
    return std::nullopt;
  }
  const Machine::Saved saved = machine.save();
  const unsigned registers = machine.argument_registers();
  const std::size_t on_stack = arguments.size() > registers ? arguments.size() - registers : 0;
  machine.set_sp((machine.sp() & ~std::uint64_t{15}) - (on_stack * 8 + 15) / 16 * 16);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (i < registers)
      machine.set_argument(static_cast<unsigned>(i), arguments[i]);
    else if (!memory.store(machine.sp() + (i - registers) * 8, arguments[i]))
      stop("stack-overflow", "no room for arguments", function);
  }
  const std::uint64_t stack = machine.sp();
  const std::uint64_t back = return_traps_[static_cast<std::size_t>(library)];
  if (!machine.enter(memory, function, back))
    stop("stack-overflow", "no room for a return address", function);
  ++depth_;
  const bool returned = run_until(back, stack);
  --depth_;
  if (!returned) return std::nullopt;
  const std::uint64_t result = machine.result();
  machine.restore(saved);
  return result;
}

bool Process::run_until(std::uint64_t return_trap, std::uint64_t stack) {
  while (!stopped()) {
    if (!in_traps(machine.pc())) {
      machine.expose(Region::Kind::heap, heap.used());
      machine.expose(Region::Kind::objects, objc.used());
      const Machine::Exit exit = machine.run();
      if (exit.kind != Machine::Exit::Kind::fetch || !in_traps(exit.address)) {
        stop_at(exit);
        return false;
      }
      machine.set_pc(exit.address);
    }
    Trap* trap = trap_at(machine.pc());
    if (!trap) {
      stop("wild-jump", "a jump to an address that holds nothing", machine.pc());
    } else if (!trap->is_return) {
      enter_trap(*trap);
    } else if (machine.pc() == return_trap && machine.sp() == stack) {
      machine.returned_to(return_trap, stack);
      return !stopped();
    } else {
      stop("unbalanced-return", "a return to the host that belongs to another call", machine.pc());
    }
  }
  return false;
}

void Process::enter_trap(Trap& trap) {
  ++trap.calls;
  Call call(*this, trap, trap.large_structure ? 1 : 0);
  if (trap.method) {
    trap.method(call);
  } else if (trap.function && trap.function->handler) {
    trap.function->handler(call);
  } else {
    call.returns(trap.function ? trap.function->value : 0);
  }
  if (objc.full())
    stop("budget-objects", "no room is left for objects, selectors and texts", caller());
  if (memory.work() / bytes_an_instruction > request.budget.instructions)
    stop("budget-instructions", "the budget is spent in imported functions", caller());
  if (!stopped() && !call.jumped()) machine.leave(memory);
}

namespace {

struct StopWord {
  Machine::Exit::Kind kind;
  std::string_view word, text;
};
using Kind = Machine::Exit::Kind;
constexpr std::array<StopWord, 11> stop_words = {{
    {Kind::fetch, "wild-jump", "a jump to an address that holds no code"},
    {Kind::read, "unmapped-read", "a read of an address that holds nothing"},
    {Kind::write, "unmapped-write", "a write to an address that holds nothing"},
    {Kind::instruction, "bad-instruction", "an instruction that cannot be executed"},
    {Kind::breakpoint, "breakpoint", "a trap instruction: the program gave up"},
    {Kind::system_call, "system-call", "a system call without libSystem"},
    {Kind::halted, "halted", "the processor was halted"},
    {Kind::budget_instructions, "budget-instructions", "the instruction budget is spent"},
    {Kind::budget_time, "budget-time", "the time budget is spent"},
    {Kind::clock, "host-dependent", "an instruction whose result differs from run to run"},
    {Kind::engine, "engine", "the engine gave up"},
}};

}  // namespace

void Process::stop_at(const Machine::Exit& exit) {
  const auto* row = std::ranges::find(stop_words, exit.kind, &StopWord::kind);
  std::string word(row->word), text(row->text);
  const bool access = exit.kind == Kind::read || exit.kind == Kind::write;
  if (access || exit.kind == Kind::fetch) {
    text += fmt::format(": {}", name_of(exit.address));
    if (exit.address < null_page) word = exit.kind == Kind::fetch ? "null-call" : "null-access";
    if (access && exit.mapped)
      word = exit.kind == Kind::write ? "read-only-write" : "protected-read";
    const std::uint64_t below = guest::stack - exit.address;
    if (access && below != 0 && below <= guest::stack_size) word = "stack-overflow";
    if (const Trap* trap = trap_at(exit.address & ~std::uint64_t{15}); access && trap) {
      word = "imported-datum";
      text = fmt::format("access to {}, whose contents the simulator does not have", trap->name);
    }
  } else if (!exit.text.empty()) {
    text += fmt::format(": {}", exit.text);
  }
  stop(std::move(word), std::move(text), exit.kind == Kind::fetch ? caller() : exit.pc);
}

std::uint64_t Process::send(std::uint64_t receiver, std::string_view selector,
                            std::initializer_list<std::uint64_t> arguments, SystemLibrary library) {
  std::vector<std::uint64_t> all = {receiver, objc.selector(selector)};
  all.insert(all.end(), arguments);
  return call(symbol_address("_objc_msgSend"), all, library).value_or(0);
}

}  // namespace metaldoctor
