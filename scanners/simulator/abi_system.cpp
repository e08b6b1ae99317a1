#include <fmt/format.h>

#include "scanners/simulator/abi_tables.h"
#include "scanners/simulator/call_access.h"

namespace metaldoctor {
namespace {

constexpr std::uint64_t minus_one = ~std::uint64_t{0};
// A moment that never passes: 2026-01-01 00:00:00 UTC, 1000 s after boot.
constexpr std::uint64_t now_seconds = 1'767'225'600, uptime_seconds = 1000;
constexpr std::uint64_t nanoseconds = 1'000'000'000;
constexpr std::uint64_t ticks_a_second = 24'000'000;  // mach_absolute_time on Apple silicon

void do_getenv(Call& call) {
  Process& process = call.process;
  const std::string name = call.text(0);
  const auto found = process.environment.find(name);
  if (found == process.environment.end()) return call.returns(0);
  std::uint64_t& text = process.environment_texts[name + "=" + found->second];
  if (!text) text = process.objc.text(found->second);
  call.returns(text);
}
constexpr std::size_t max_variables = 4096, max_variable = std::size_t{64} << 10;

void do_setenv(Call& call) {
  const std::string name = call.text(0), value = call.text(1);
  if (call.process.environment.size() >= max_variables || name.size() + value.size() > max_variable)
    return call.returns(minus_one);
  if (call.arg(2) || !call.process.environment.contains(name))
    call.process.environment[name] = value;
  call.returns(0);
}
void do_unsetenv(Call& call) {
  call.process.environment.erase(call.text(0));
  call.returns(0);
}
void do_putenv(Call& call) {
  const std::string text = call.text(0);
  const auto equals = text.find('=');
  if (equals != std::string::npos && text.size() <= max_variable &&
      call.process.environment.size() < max_variables)
    call.process.environment[text.substr(0, equals)] = text.substr(equals + 1);
  call.returns(0);
}
/// char ***: the environment as it was when first asked for.
void do_environ(Call& call) {
  Process& process = call.process;
  if (process.environ_texts.empty()) {
    const std::uint64_t place = process.objc.reserve(8);
    const std::uint64_t list = process.objc.reserve((process.environment.size() + 1) * 8);
    std::uint64_t at = list;
    for (const auto& [name, value] : process.environment) {
      process.memory.store(at, process.objc.text(name + "=" + value), true);
      at += 8;
    }
    process.memory.store(place, list, true);
    process.environ_texts.push_back(place);
  }
  call.returns(process.environ_texts.front());
}

struct Sysconf {
  std::uint64_t name, value;
};
void do_sysconf(Call& call) {
  // _SC_PAGESIZE, _SC_NPROCESSORS_CONF, _SC_NPROCESSORS_ONLN, _SC_PHYS_PAGES, _SC_OPEN_MAX
  constexpr Sysconf known[] = {{29, 16384}, {57, 4}, {58, 4}, {200, 524288}, {5, 256}};
  for (const Sysconf& row : known)
    if (row.name == call.arg(0)) return call.returns(row.value);
  call.process.assume(fmt::format("sysconf({}) fails", call.arg(0)));
  call.returns(minus_one);
}
void do_getpagesize(Call& call) {
  call.returns(16384);
}

struct Sysctl {
  std::string_view name;
  std::uint64_t value;
  std::uint64_t size;
};
constexpr Sysctl sysctls[] = {
    {"hw.ncpu", 4, 4},
    {"hw.physicalcpu", 4, 4},
    {"hw.logicalcpu", 4, 4},
    {"hw.activecpu", 4, 4},
    {"hw.pagesize", 16384, 8},
    {"hw.memsize", std::uint64_t{8} << 30, 8},
    {"hw.cachelinesize", 128, 8},
    {"hw.perflevel0.physicalcpu", 4, 4},
    {"hw.optional.arm64", 1, 4},
    {"sysctl.proc_translated", 0, 4},
};
/// sysctlbyname(name, old, &old_size, new, new_size): the machine's identity is the capture's.
void do_sysctlbyname(Call& call) {
  Process& process = call.process;
  const std::string name = call.text(0);
  const auto& devices = process.request.devices;
  static const Capture::System none;
  const Capture::System& system = devices.empty() ? none : devices[0].capture.system;
  std::string bytes;
  const auto is = [&](std::string_view wanted, const std::string& text) {
    if (name == wanted && !text.empty()) bytes = text + '\0';
  };
  is("machdep.cpu.brand_string", system.cpu_brand);
  is("hw.model", system.hw_model);
  is("kern.osproductversion", system.os);
  is("kern.osversion", system.build);
  const auto number = [&](std::uint64_t value, std::size_t size) {
    bytes.assign(reinterpret_cast<const char*>(&value), size);
  };
  if (name == "kern.hv_vmm_present" && system.is_virtual) number(*system.is_virtual ? 1 : 0, 4);
  for (const Sysctl& row : sysctls)
    if (row.name == name) number(row.value, row.size);
  if (bytes.empty()) {
    process.assume(fmt::format("sysctlbyname(\"{}\") fails", name));
    constexpr std::int32_t enoent = 2;
    process.memory.store(process.errno_address, enoent, true);
    return call.returns(minus_one);
  }
  const std::uint64_t size_at = call.arg(2);
  if (call.arg(1) && size_at) {
    const std::uint64_t room = call.load<std::uint64_t>(size_at);
    if (room < bytes.size()) return call.returns(minus_one);
    process.memory.write(call.arg(1),
                         {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  }
  if (size_at) call.store<std::uint64_t>(size_at, bytes.size());
  call.returns(0);
}

void do_clock_gettime(Call& call) {
  constexpr std::uint64_t realtime = 0;
  call.store(call.arg(1), call.arg(0) == realtime ? now_seconds : uptime_seconds);
  call.store<std::uint64_t>(call.arg(1) + 8, 0);
  call.returns(0);
}
void do_gettimeofday(Call& call) {
  call.store(call.arg(0), now_seconds);
  call.store<std::uint64_t>(call.arg(0) + 8, 0);
  call.returns(0);
}
void do_time(Call& call) {
  if (call.arg(0)) call.store(call.arg(0), now_seconds);
  call.returns(now_seconds);
}
void do_timebase(Call& call) {
  const bool arm = call.process.machine.arch() == SimArch::arm64;
  call.store<std::uint32_t>(call.arg(0), arm ? 125 : 1);
  call.store<std::uint32_t>(call.arg(0) + 4, arm ? 3 : 1);
  call.returns(0);
}

void do_abort(Call& call) {
  call.process.stop("abort", fmt::format("the program called {}", call.trap.name),
                    call.process.caller());
}
/// __assert_rtn(function, file, line, expression)
void do_assert(Call& call) {
  call.process.stop("abort", fmt::format("assertion failed: {}", call.text(3)),
                    call.process.caller());
}
void do_exit(Call& call) {
  Process& process = call.process;
  const int status = static_cast<int>(call.arg(0)) & 0xff;
  while (!process.at_exit.empty() && !process.stopped()) {
    const auto [function, argument] = process.at_exit.back();
    process.at_exit.pop_back();
    process.call(function, {argument});
  }
  process.exit(status);
}
void do_quick_exit(Call& call) {
  call.process.exit(static_cast<int>(call.arg(0)) & 0xff);
}
void do_atexit(Call& call) {
  if (!call.process.charge(16)) return;
  // atexit(f), __cxa_atexit(f, argument, dso)
  call.process.at_exit.emplace_back(call.arg(0), call.trap.name == "_atexit" ? 0 : call.arg(1));
  call.returns(0);
}
void do_errno(Call& call) {
  call.returns(call.process.errno_address);
}
void do_strerror(Call& call) {
  call.returns(call.process.objc.text(fmt::format("error {}", call.arg(0))));
}
void do_pthread_create(Call& call) {
  Process& process = call.process;
  process.assume("threads run only when they are joined");
  const std::uint64_t handle = process.next_handle++;
  process.queue({call.arg(2), call.arg(3), handle});
  call.store(call.arg(0), handle);
  call.returns(0);
}
void do_pthread_join(Call& call) {
  call.process.run_queued(call.arg(0));
  if (call.arg(1)) call.store<std::uint64_t>(call.arg(1), 0);
  call.returns(0);
}
void do_pthread_once(Call& call) {
  constexpr std::uint64_t done = 0x4f4e4345;  // any value but the initialiser's
  if (call.load<std::uint64_t>(call.arg(0)) != done) {
    call.store(call.arg(0), done);
    call.process.call(call.arg(1), std::initializer_list<std::uint64_t>{});
  }
  call.returns(0);
}
void do_key_create(Call& call) {
  call.store<std::uint64_t>(call.arg(0), call.process.next_handle++);
  call.returns(0);
}
void do_getspecific(Call& call) {
  const auto found = call.process.thread_values.find(call.arg(0));
  call.returns(found == call.process.thread_values.end() ? 0 : found->second);
}
void do_setspecific(Call& call) {
  if (!call.process.charge(64)) return;
  call.process.thread_values[call.arg(0)] = call.arg(1);
  call.returns(0);
}
void do_system_call(Call& call) {
  call.process.assume(fmt::format("{} fails", call.trap.name));
  call.returns(minus_one);
}

constexpr auto exact = Fidelity::exact;
constexpr auto constant = Fidelity::constant;
constexpr auto assumed = Fidelity::assumed;

constexpr HostFunction functions[] = {
    {"_getenv", exact, do_getenv},
    {"_setenv", exact, do_setenv},
    {"_unsetenv", exact, do_unsetenv},
    {"_putenv", exact, do_putenv},
    {"__NSGetEnviron", exact, do_environ},
    {"_sysconf", constant, do_sysconf},
    {"_getpagesize", constant, do_getpagesize},
    {"_sysctlbyname", constant, do_sysctlbyname},
    {"_sysctl", assumed, do_system_call},
    {"_clock_gettime", constant, do_clock_gettime},
    {"_clock_gettime_nsec_np", constant, nullptr, uptime_seconds * nanoseconds},
    {"_gettimeofday", constant, do_gettimeofday},
    {"_time", constant, do_time},
    {"_clock", constant},
    {"_mach_absolute_time", constant, nullptr, uptime_seconds * ticks_a_second},
    {"_mach_continuous_time", constant, nullptr, uptime_seconds * ticks_a_second},
    {"_mach_timebase_info", constant, do_timebase},
    {"_usleep", constant},
    {"_nanosleep", constant},
    {"_sleep", constant},
    {"_sched_yield", constant},
    {"_getpid", constant, nullptr, 4242},
    {"_getppid", constant, nullptr, 1},
    {"_getuid", constant, nullptr, 501},
    {"_geteuid", constant, nullptr, 501},
    {"_issetugid", constant},
    {"_abort", exact, do_abort},
    {"___stack_chk_fail", exact, do_abort},
    {"___assert_rtn", exact, do_assert},
    {"___chkstk_darwin", constant, [](Call&) {}},
    {"_exit", exact, do_exit},
    {"__exit", exact, do_quick_exit},
    {"__Exit", exact, do_quick_exit},
    {"_atexit", exact, do_atexit},
    {"___cxa_atexit", exact, do_atexit},
    {"___cxa_thread_atexit", constant},
    {"__tlv_atexit", constant},
    {"___error", exact, do_errno},
    {"_strerror", assumed, do_strerror},
    {"_signal", constant},
    {"_sigaction", constant},
    {"_raise", exact, do_abort},
    {"_fork", assumed, do_system_call},
    {"_execlp", assumed, do_system_call},
    {"_waitpid", assumed, do_system_call},
    {"_stat", assumed, do_system_call},
    {"_lstat", assumed, do_system_call},
    {"_fstat", assumed, do_system_call},
    {"_backtrace", constant},
    {"_backtrace_symbols_fd", constant},
    {"_pthread_self", constant, nullptr, 0x7a11},
    {"_pthread_main_np", constant, nullptr, 1},
    {"_pthread_threadid_np", constant},
    {"_pthread_create", assumed, do_pthread_create},
    {"_pthread_join", assumed, do_pthread_join},
    {"_pthread_detach", constant},
    {"_pthread_setname_np", constant},
    {"_pthread_once", exact, do_pthread_once},
    {"_pthread_key_create", exact, do_key_create},
    {"_pthread_getspecific", exact, do_getspecific},
    {"_pthread_setspecific", exact, do_setspecific},
    {"_pthread_mutex_init", constant},
    {"_pthread_mutex_destroy", constant},
    {"_pthread_mutex_lock", constant},
    {"_pthread_mutex_trylock", constant},
    {"_pthread_mutex_unlock", constant},
    {"_pthread_rwlock_rdlock", constant},
    {"_pthread_rwlock_wrlock", constant},
    {"_pthread_rwlock_unlock", constant},
    {"_pthread_cond_signal", constant},
    {"_pthread_cond_broadcast", constant},
    {"_os_unfair_lock_lock", constant},
    {"_os_unfair_lock_trylock", constant, nullptr, 1},
    {"_os_unfair_lock_unlock", constant},
    {"_OSMemoryBarrier", constant},
};

}  // namespace

std::span<const HostFunction> system_functions() {
  return functions;
}

}  // namespace metaldoctor
