#include "scanners/simulator/abi_tables.h"
#include "scanners/simulator/call_access.h"

namespace metaldoctor {
namespace {

void do_malloc(Call& call) {
  call.returns(call.process.allocate(call.arg(0)));
}
void do_calloc(Call& call) {
  std::uint64_t size = 0;
  if (__builtin_mul_overflow(call.arg(0), call.arg(1), &size)) return call.returns(0);
  const std::uint64_t address = call.process.allocate(size);
  if (address) call.process.memory.clear(address, size);
  call.returns(address);
}
void do_free(Call& call) {
  const std::uint64_t address = call.arg(0);
  if (address != 0 && !call.process.heap.release(address))
    call.process.stop("bad-free", "free of what malloc did not give", call.process.caller());
}
void do_realloc(Call& call) {
  Process& process = call.process;
  const std::uint64_t old = call.arg(0), size = call.arg(1);
  const Heap::Block* block = old ? process.heap.block(old) : nullptr;
  if (old && !block)
    return process.stop("bad-free", "realloc of what malloc did not give", process.caller());
  const std::uint64_t kept = block ? std::min(block->size, size) : 0;
  const std::uint64_t address = process.allocate(size);
  if (!address) return;
  process.memory.move(address, old, kept);
  if (old) process.heap.release(old);
  call.returns(address);
}
void do_posix_memalign(Call& call) {
  constexpr std::uint64_t einval = 22;
  const std::uint64_t alignment = call.arg(1);
  if (alignment < 8 || (alignment & (alignment - 1))) return call.returns(einval);
  call.store(call.arg(0), call.process.allocate(call.arg(2), alignment));
  call.returns(0);
}
void do_aligned_alloc(Call& call) {
  call.returns(call.process.allocate(call.arg(1), call.arg(0)));
}
void do_aligned_new(Call& call) {
  call.returns(call.process.allocate(call.arg(0), call.arg(1)));
}
void do_valloc(Call& call) {
  call.returns(call.process.allocate(call.arg(0), 0x4000));
}
void do_malloc_size(Call& call) {
  const Heap::Block* block = call.process.heap.block(call.arg(0));
  call.returns(block ? block->size : 0);
}
/// vm_allocate(task, &address, size, flags): zeroed pages.
void do_vm_allocate(Call& call) {
  const std::uint64_t size = call.arg(2);
  const std::uint64_t address = call.process.allocate(size, 0x4000);
  if (!address) return;
  call.process.memory.clear(address, size);
  call.store(call.arg(1), address);
  call.returns(0);
}
void do_vm_deallocate(Call& call) {
  call.process.heap.release(call.arg(1));
  call.returns(0);
}
void do_mmap(Call& call) {
  constexpr std::uint64_t map_anonymous = 0x1000;
  if (!(call.arg(3) & map_anonymous)) {
    call.process.assume("mmap of a file fails");
    return call.returns(~std::uint64_t{0});
  }
  const std::uint64_t address = call.process.allocate(call.arg(1), 0x4000);
  if (address) call.process.memory.clear(address, call.arg(1));
  call.returns(address);
}
void do_munmap(Call& call) {
  call.process.heap.release(call.arg(0));
  call.returns(0);
}
void do_memcpy(Call& call) {
  if (!call.process.memory.move(call.arg(0), call.arg(1), call.arg(2)))
    call.fault("cannot be copied", call.arg(1));
  call.returns(call.arg(0));
}
void do_memset(Call& call) {
  if (!call.process.memory.fill(call.arg(0), static_cast<std::uint8_t>(call.arg(1)), call.arg(2)))
    call.fault("cannot be filled", call.arg(0));
  call.returns(call.arg(0));
}
void do_bzero(Call& call) {
  if (!call.process.memory.fill(call.arg(0), 0, call.arg(1)))
    call.fault("cannot be filled", call.arg(0));
}
/// memset_pattern4/8/16(destination, pattern, length).
template <std::uint64_t Size>
void do_memset_pattern(Call& call) {
  for (std::uint64_t at = 0; at < call.arg(2) && !call.process.stopped(); at += Size)
    if (!call.process.memory.move(call.arg(0) + at, call.arg(1), std::min(Size, call.arg(2) - at)))
      call.fault("cannot be filled", call.arg(0));
}
void do_memcmp(Call& call) {
  GuestBytes a(call, call.arg(0)), b(call, call.arg(1));
  int result = 0;
  for (std::uint64_t i = 0; i < call.arg(2) && result == 0 && a.ok(); ++i)
    result = a.next() - b.next();
  call.returns(static_cast<std::uint64_t>(static_cast<std::int64_t>(result)));
}
void do_memchr(Call& call) {
  GuestBytes bytes(call, call.arg(0));
  for (std::uint64_t i = 0; i < call.arg(2) && bytes.ok(); ++i)
    if (bytes.next() == static_cast<std::uint8_t>(call.arg(1)))
      return call.returns(call.arg(0) + i);
  call.returns(0);
}
void do_memcpy_chk(Call& call) {
  if (call.arg(2) > call.arg(3))
    return call.process.stop("abort", "a checked copy overflows its target", call.process.caller());
  do_memcpy(call);
}
void do_memset_chk(Call& call) {
  if (call.arg(2) > call.arg(3))
    return call.process.stop("abort", "a checked fill overflows its target", call.process.caller());
  do_memset(call);
}

constexpr auto exact = Fidelity::exact;
constexpr auto constant = Fidelity::constant;

constexpr HostFunction functions[] = {
    {"_malloc", exact, do_malloc},
    {"_malloc_type_malloc", exact, do_malloc},
    {"_calloc", exact, do_calloc},
    {"_malloc_type_calloc", exact, do_calloc},
    {"_realloc", exact, do_realloc},
    {"_malloc_type_realloc", exact, do_realloc},
    {"_reallocf", exact, do_realloc},
    {"_free", exact, do_free},
    {"_posix_memalign", exact, do_posix_memalign},
    {"_malloc_type_posix_memalign", exact, do_posix_memalign},
    {"_aligned_alloc", exact, do_aligned_alloc},
    {"_malloc_type_aligned_alloc", exact, do_aligned_alloc},
    {"_valloc", exact, do_valloc},
    {"_malloc_size", exact, do_malloc_size},
    {"_malloc_zone_malloc", exact, [](Call& c) { c.returns(c.process.allocate(c.arg(1))); }},
    {"_malloc_default_zone", constant, nullptr, 1},
    {"__Znwm", exact, do_malloc},
    {"__Znam", exact, do_malloc},
    {"__ZnwmRKSt9nothrow_t", exact, do_malloc},
    {"__ZnamRKSt9nothrow_t", exact, do_malloc},
    {"__ZnwmSt11align_val_t", exact, do_aligned_new},
    {"__ZnamSt11align_val_t", exact, do_aligned_new},
    {"__ZnwmSt19__type_descriptor_t", exact, do_malloc},
    {"__ZnamSt19__type_descriptor_t", exact, do_malloc},
    {"__ZdlPv", exact, do_free},
    {"__ZdaPv", exact, do_free},
    {"__ZdlPvm", exact, do_free},
    {"__ZdaPvm", exact, do_free},
    {"__ZdlPvSt11align_val_t", exact, do_free},
    {"__ZdaPvSt11align_val_t", exact, do_free},
    {"_vm_allocate", exact, do_vm_allocate},
    {"_mach_vm_allocate", exact, do_vm_allocate},
    {"_vm_deallocate", exact, do_vm_deallocate},
    {"_mach_vm_deallocate", exact, do_vm_deallocate},
    {"_mmap", exact, do_mmap},
    {"_munmap", exact, do_munmap},
    {"_mprotect", constant},
    {"_madvise", constant},
    {"_memcpy", exact, do_memcpy},
    {"_memmove", exact, do_memcpy},
    {"___memcpy_chk", exact, do_memcpy_chk},
    {"___memmove_chk", exact, do_memcpy_chk},
    {"_memset", exact, do_memset},
    {"___memset_chk", exact, do_memset_chk},
    {"_bzero", exact, do_bzero},
    {"___bzero", exact, do_bzero},
    {"_memset_pattern4", exact, do_memset_pattern<4>},
    {"_memset_pattern8", exact, do_memset_pattern<8>},
    {"_memset_pattern16", exact, do_memset_pattern<16>},
    {"_memcmp", exact, do_memcmp},
    {"_bcmp", exact, do_memcmp},
    {"_memchr", exact, do_memchr},
};

}  // namespace

std::span<const HostFunction> memory_functions() {
  return functions;
}

}  // namespace metaldoctor
