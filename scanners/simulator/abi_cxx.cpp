#include <fmt/format.h>

#include "scanners/simulator/abi_tables.h"
#include "scanners/simulator/call_access.h"

namespace metaldoctor {
namespace {

// ---- the C++ ABI

/// The first byte of a guard says that initialisation is done (Itanium C++ ABI 3.3.2).
void do_guard_acquire(Call& call) {
  call.returns(call.load<std::uint8_t>(call.arg(0)) == 0);
}
void do_guard_release(Call& call) {
  call.store<std::uint8_t>(call.arg(0), 1);
}
void do_allocate_exception(Call& call) {
  constexpr std::uint64_t header = 128;
  const std::uint64_t block = call.process.allocate(call.arg(0) + header);
  call.returns(block ? block + header : 0);
}
/// There is no unwinder: a throw ends the run and says what was thrown.
void do_throw(Call& call) {
  const auto name_at = call.process.memory.load<std::uint64_t>(call.arg(1) + 8);
  const auto name = name_at ? call.process.memory.cstring(*name_at, 1024) : std::nullopt;
  const std::string type = name && !name->empty() ? *name : call.process.name_of(call.arg(1));
  call.process.stop("exception", fmt::format("the program threw {}", type), call.process.caller());
}
void do_throw_named(Call& call) {
  call.process.stop("exception", fmt::format("the program called {}", call.trap.name),
                    call.process.caller());
}

// ---- std::string of libc++: 24 bytes. arm64 macOS uses the alternate layout, where the size of a
// short string or the mark of a long one is in the last byte; x86_64 has it in the first.

struct GuestString {
  Call& call;
  std::uint64_t at;
  bool alternate;

  GuestString(Call& c, std::uint64_t address)
      : call(c), at(address), alternate(c.process.machine.arch() == SimArch::arm64) {}

  bool is_long() const {
    return alternate ? call.load<std::uint8_t>(at + 23) & 0x80 : call.load<std::uint8_t>(at) & 1;
  }
  std::uint64_t data() const {
    if (!is_long()) return alternate ? at : at + 1;
    return call.load<std::uint64_t>(alternate ? at : at + 16);
  }
  std::uint64_t size() const {
    if (is_long()) return call.load<std::uint64_t>(at + 8);
    const auto byte = call.load<std::uint8_t>(alternate ? at + 23 : at);
    return alternate ? byte : byte >> 1;
  }
  std::string get() const {
    constexpr std::uint64_t most = std::uint64_t{16} << 20;
    const std::uint64_t length = size();
    std::string text(std::min(length, most), '\0');
    if (!call.process.memory.read(data(),
                                  {reinterpret_cast<std::uint8_t*>(text.data()), text.size()}))
      call.fault("is no std::string", at);
    return text;
  }
  /// `fresh`: the 24 bytes hold nothing yet.
  void set(std::string_view text, bool fresh = false) {
    constexpr std::uint64_t short_room = 23;
    if (!fresh && is_long()) call.process.heap.release(data());
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
    Memory& memory = call.process.memory;
    memory.fill(at, 0, 24);
    if (text.size() < short_room) {
      const auto size = static_cast<std::uint8_t>(text.size());
      memory.write(alternate ? at : at + 1, {bytes, text.size()});
      call.store<std::uint8_t>(alternate ? at + 23 : at,
                               alternate ? size : static_cast<std::uint8_t>(size << 1));
      return;
    }
    const std::uint64_t capacity = (text.size() + 16) / 16 * 16;
    const std::uint64_t block = call.process.allocate(capacity);
    if (!block) return;
    memory.write(block, {bytes, text.size()});
    memory.store<std::uint8_t>(block + text.size(), 0);
    call.store<std::uint64_t>(alternate ? at : at + 16, block);
    call.store<std::uint64_t>(at + 8, text.size());
    call.store<std::uint64_t>(alternate ? at + 16 : at,
                              alternate ? capacity | std::uint64_t{1} << 63 : capacity | 1);
  }
};

std::string text_of_size(Call& call, std::uint64_t address, std::uint64_t size) {
  constexpr std::uint64_t most = std::uint64_t{16} << 20;
  std::string text(std::min(size, most), '\0');
  if (!call.process.memory.read(address,
                                {reinterpret_cast<std::uint8_t*>(text.data()), text.size()}))
    call.fault("cannot be read", address);
  return text;
}

void do_append(Call& call) {
  GuestString self(call, call.arg(0));
  self.set(self.get() + call.text(1));
  call.returns(call.arg(0));
}
void do_append_size(Call& call) {
  GuestString self(call, call.arg(0));
  self.set(self.get() + text_of_size(call, call.arg(1), call.arg(2)));
  call.returns(call.arg(0));
}
void do_assign(Call& call) {
  GuestString(call, call.arg(0)).set(call.text(1));
  call.returns(call.arg(0));
}
void do_assign_size(Call& call) {
  GuestString(call, call.arg(0)).set(text_of_size(call, call.arg(1), call.arg(2)));
  call.returns(call.arg(0));
}
void do_copy_assign(Call& call) {
  GuestString(call, call.arg(0)).set(GuestString(call, call.arg(1)).get());
  call.returns(call.arg(0));
}
void do_copy_construct(Call& call) {
  GuestString(call, call.arg(0)).set(GuestString(call, call.arg(1)).get(), /*fresh=*/true);
  call.returns(call.arg(0));
}
void do_init_size(Call& call) {  // __init(const char*, size_t)
  GuestString(call, call.arg(0)).set(text_of_size(call, call.arg(1), call.arg(2)), /*fresh=*/true);
}
void do_insert(Call& call) {
  GuestString self(call, call.arg(0));
  std::string text = self.get();
  if (call.arg(1) > text.size()) return do_throw_named(call);
  self.set(text.insert(call.arg(1), call.text(2)));
  call.returns(call.arg(0));
}
void do_push_back(Call& call) {
  GuestString self(call, call.arg(0));
  self.set(self.get() + static_cast<char>(call.arg(1)));
}
void do_resize(Call& call) {
  GuestString self(call, call.arg(0));
  std::string text = self.get();
  constexpr std::uint64_t most = std::uint64_t{16} << 20;
  if (call.arg(1) > most) return do_throw_named(call);
  text.resize(call.arg(1), static_cast<char>(call.arg(2)));
  self.set(text);
}
void do_destroy(Call& call) {
  GuestString self(call, call.arg(0));
  if (self.is_long()) call.process.heap.release(self.data());
}
template <typename T>
void do_to_string(Call& call) {
  const bool arm = call.process.machine.arch() == SimArch::arm64;
  const std::uint64_t place = call.process.machine.structure_pointer();
  GuestString(call, place).set(std::to_string(static_cast<T>(call.arg(arm ? 0 : 1))), true);
  if (!arm) call.returns(place);
}
/// The next prime that is not below the argument: hash tables of libc++.
void do_next_prime(Call& call) {
  std::uint64_t n = std::max<std::uint64_t>(call.arg(0), 2);
  constexpr std::uint64_t most = std::uint64_t{1} << 32;
  if (n > most) return do_throw_named(call);
  const auto is_prime = [](std::uint64_t value) {
    for (std::uint64_t d = 2; d * d <= value; ++d)
      if (value % d == 0) return false;
    return true;
  };
  while (!is_prime(n)) ++n;
  call.returns(call.arg(0) == 0 ? 0 : n);
}

constexpr auto exact = Fidelity::exact;
constexpr auto constant = Fidelity::constant;

#define LIBCXX_STRING "__ZNSt3__112basic_stringIcNS_11char_traitsIcEENS_9allocatorIcEEE"

constexpr HostFunction functions[] = {
    {"___cxa_guard_acquire", exact, do_guard_acquire},
    {"___cxa_guard_release", exact, do_guard_release},
    {"___cxa_guard_abort", constant},
    {"___cxa_allocate_exception", exact, do_allocate_exception},
    {"___cxa_free_exception", constant},
    {"___cxa_throw", exact, do_throw},
    {"___cxa_rethrow", exact, do_throw_named},
    {"___cxa_begin_catch", exact, [](Call& c) { c.returns(c.arg(0)); }},
    {"___cxa_end_catch", constant},
    {"___cxa_pure_virtual", exact, do_throw_named},
    {"__Unwind_Resume", exact, do_throw_named},
    {"__ZSt9terminatev", exact, do_throw_named},
    {"__ZSt13get_terminatev", constant},
    {"__ZSt13set_terminatePFvvE", constant},
    {"_objc_exception_throw", exact, do_throw_named},
    {"___gxx_personality_v0", constant},
    {"___objc_personality_v0", constant},
    {"__ZNSt11logic_errorC2EPKc", constant},
    {"__ZNSt13runtime_errorC1EPKc", constant},
    {"__ZNSt13runtime_errorC1ERKNSt3__112basic_stringIcNS0_11char_traitsIcEENS0_9allocatorIcEEEE",
     constant},
    {"__ZNSt20bad_array_new_lengthC1Ev", constant},
    {"__ZNSt3__15mutex4lockEv", constant},
    {"__ZNSt3__15mutex6unlockEv", constant},
    {"__ZNSt3__15mutex8try_lockEv", constant, nullptr, 1},
    {"__ZNSt3__15mutexD1Ev", constant},
    {"__ZNSt3__115recursive_mutexC1Ev", constant},
    {"__ZNSt3__115recursive_mutexD1Ev", constant},
    {"__ZNSt3__115recursive_mutex4lockEv", constant},
    {"__ZNSt3__115recursive_mutex6unlockEv", constant},
    {"__ZNSt3__118condition_variable10notify_oneEv", constant},
    {"__ZNSt3__118condition_variable10notify_allEv", constant},
    {"__ZNSt3__118condition_variableD1Ev", constant},
    {"__ZNSt3__112__next_primeEm", exact, do_next_prime},
    {"__ZNSt3__19to_stringEi", exact, do_to_string<std::int32_t>},
    {"__ZNSt3__19to_stringEj", exact, do_to_string<std::uint32_t>},
    {"__ZNSt3__19to_stringEl", exact, do_to_string<std::int64_t>},
    {"__ZNSt3__19to_stringEx", exact, do_to_string<std::int64_t>},
    {"__ZNSt3__19to_stringEm", exact, do_to_string<std::uint64_t>},
    {"__ZNSt3__19to_stringEy", exact, do_to_string<std::uint64_t>},
    {LIBCXX_STRING "6appendEPKc", exact, do_append},
    {LIBCXX_STRING "6appendEPKcm", exact, do_append_size},
    {LIBCXX_STRING "6assignEPKc", exact, do_assign},
    {LIBCXX_STRING "6assignEPKcm", exact, do_assign_size},
    {LIBCXX_STRING "6insertEmPKc", exact, do_insert},
    {LIBCXX_STRING "6resizeEmc", exact, do_resize},
    {LIBCXX_STRING "9push_backEc", exact, do_push_back},
    {LIBCXX_STRING "aSERKS5_", exact, do_copy_assign},
    {LIBCXX_STRING "C1ERKS5_", exact, do_copy_construct},
    {LIBCXX_STRING "6__initEPKcm", exact, do_init_size},
    {LIBCXX_STRING "D1Ev", exact, do_destroy},
};

#undef LIBCXX_STRING

}  // namespace

std::span<const HostFunction> cxx_functions() {
  return functions;
}

}  // namespace metaldoctor
