#include "scanners/simulator/abi_tables.h"
#include "scanners/simulator/call_access.h"

namespace metaldoctor {
namespace {

// Layouts of the Block ABI (clang's Block-ABI-Apple document).
namespace block {
constexpr std::uint64_t flags = 8, invoke = 16, descriptor = 24;
constexpr std::uint64_t descriptor_size = 8, copy_helper = 16;
constexpr std::uint32_t is_global = 1u << 28, has_helpers = 1u << 25, needs_free = 1u << 24;
constexpr std::uint64_t byref_forwarding = 8, byref_flags = 16, byref_size = 20, byref_keep = 24;
constexpr std::uint32_t field_block = 7, field_byref = 8, field_kind = 0xf;
}  // namespace block

std::uint64_t invoke_of(Call& call, std::uint64_t address) {
  return call.load<std::uint64_t>(address + block::invoke);
}

std::uint64_t copy_block(Call& call, std::uint64_t source) {
  Process& process = call.process;
  if (source == 0) return 0;
  const auto flags = call.load<std::uint32_t>(source + block::flags);
  if (flags & (block::is_global | block::needs_free)) return source;
  const auto descriptor = call.load<std::uint64_t>(source + block::descriptor);
  const auto size = call.load<std::uint64_t>(descriptor + block::descriptor_size);
  const std::uint64_t copy = process.stopped() ? 0 : process.allocate(size);
  if (!copy) return 0;
  if (!process.memory.move(copy, source, size)) call.fault("is no block", source);
  call.store<std::uint64_t>(copy, process.symbol_address("__NSConcreteMallocBlock"));
  call.store(copy + block::flags, flags | block::needs_free | 2);
  if (flags & block::has_helpers)
    process.call(call.load<std::uint64_t>(descriptor + block::copy_helper), {copy, source});
  return copy;
}
void do_block_copy(Call& call) {
  call.returns(copy_block(call, call.arg(0)));
}

std::uint64_t copy_byref(Call& call, std::uint64_t variable) {
  const auto source = call.load<std::uint64_t>(variable + block::byref_forwarding);
  const auto flags = call.load<std::uint32_t>(source + block::byref_flags);
  if (flags & block::needs_free) return source;
  const auto size = call.load<std::uint32_t>(source + block::byref_size);
  const std::uint64_t copy = call.process.stopped() ? 0 : call.process.allocate(size);
  if (!copy) return 0;
  call.process.memory.move(copy, source, size);
  call.store(copy + block::byref_forwarding, copy);
  call.store(source + block::byref_forwarding, copy);
  call.store(copy + block::byref_flags, flags | block::needs_free | 4);
  if (flags & block::has_helpers)
    call.process.call(call.load<std::uint64_t>(source + block::byref_keep), {copy, source});
  return copy;
}
/// _Block_object_assign(void *destination, const void *object, int flags)
void do_object_assign(Call& call) {
  const auto kind = static_cast<std::uint32_t>(call.arg(2)) & block::field_kind;
  std::uint64_t value = call.arg(1);
  if (kind == block::field_block) value = copy_block(call, value);
  if (kind == block::field_byref) value = copy_byref(call, value);
  call.store(call.arg(0), value);
}

void run_block(Call& call, std::uint64_t address) {
  const std::uint64_t function = invoke_of(call, address);
  if (!call.process.stopped()) call.process.call(function, {address});
}

/// The predicate is all ones when done: inlined callers test for that.
void do_once(Call& call) {
  const std::uint64_t predicate = call.arg(0), work = call.arg(1);
  if (call.load<std::uint64_t>(predicate) == ~std::uint64_t{0}) return;
  run_block(call, work);
  call.process.memory.store(predicate, ~std::uint64_t{0});
}
void do_once_f(Call& call) {
  const std::uint64_t predicate = call.arg(0), context = call.arg(1), function = call.arg(2);
  if (call.load<std::uint64_t>(predicate) == ~std::uint64_t{0}) return;
  call.process.call(function, {context});
  call.process.memory.store(predicate, ~std::uint64_t{0});
}
void do_apply(Call& call) {
  const std::uint64_t count = call.arg(0), work = call.arg(2), function = invoke_of(call, work);
  for (std::uint64_t i = 0; i < count && !call.process.stopped(); ++i)
    call.process.call(function, {work, i});
}
void do_apply_f(Call& call) {
  const std::uint64_t count = call.arg(0), context = call.arg(2), function = call.arg(3);
  for (std::uint64_t i = 0; i < count && !call.process.stopped(); ++i)
    call.process.call(function, {context, i});
}
void do_sync(Call& call) {
  run_block(call, call.arg(1));
}
void do_sync_f(Call& call) {
  call.process.call(call.arg(2), {call.arg(1)});
}

/// Background work waits until somebody waits for it: run at once, a block that loops until it
/// is told to end would never come back.
void enqueue(Call& call, std::uint64_t work, std::uint64_t group) {
  const std::uint64_t copy = copy_block(call, work);
  if (copy) call.process.queue({invoke_of(call, copy), copy, group});
}
void do_async(Call& call) {
  enqueue(call, call.arg(1), 0);
}
void do_async_f(Call& call) {
  call.process.queue({call.arg(2), call.arg(1), 0});
}
void do_group_async(Call& call) {
  enqueue(call, call.arg(2), call.arg(0));
}
void do_group_wait(Call& call) {
  const std::uint64_t group = call.arg(0);
  call.process.run_queued(group);
  call.returns(0);
}
/// Whoever waits for a semaphore waits for background work to signal it.
void do_semaphore_wait(Call& call) {
  call.process.run_queued(0);
  call.returns(0);
}
void do_after(Call& call) {
  call.process.assume("work of dispatch_after does not run");
  call.returns(0);
}
void do_handle(Call& call) {
  call.returns(call.process.new_object("OS_dispatch_object", call.trap.name)->address);
}

constexpr auto exact = Fidelity::exact;
constexpr auto constant = Fidelity::constant;
constexpr auto assumed = Fidelity::assumed;

constexpr HostFunction functions[] = {
    {"__Block_copy", exact, do_block_copy},
    {"__Block_release", constant},
    {"__Block_object_assign", exact, do_object_assign},
    {"__Block_object_dispose", constant},
    {"_objc_retainBlock", exact, do_block_copy},
    {"_dispatch_once", exact, do_once},
    {"_dispatch_once_f", exact, do_once_f},
    {"_dispatch_apply", exact, do_apply},
    {"_dispatch_apply_f", exact, do_apply_f},
    {"_dispatch_sync", exact, do_sync},
    {"_dispatch_sync_f", exact, do_sync_f},
    {"_dispatch_barrier_sync", exact, do_sync},
    {"_dispatch_async", assumed, do_async},
    {"_dispatch_async_f", assumed, do_async_f},
    {"_dispatch_barrier_async", assumed, do_async},
    {"_dispatch_group_async", assumed, do_group_async},
    {"_dispatch_group_wait", assumed, do_group_wait},
    {"_dispatch_semaphore_wait", assumed, do_semaphore_wait},
    {"_dispatch_semaphore_signal", constant},
    {"_dispatch_semaphore_create", constant, do_handle},
    {"_dispatch_group_create", constant, do_handle},
    {"_dispatch_group_enter", constant},
    {"_dispatch_group_leave", constant},
    {"_dispatch_queue_create", constant, do_handle},
    {"_dispatch_queue_create_with_target$V2", constant, do_handle},
    {"_dispatch_get_global_queue", constant, do_handle},
    {"_dispatch_queue_attr_make_with_qos_class", constant, do_handle},
    {"_dispatch_retain", constant},
    {"_dispatch_release", constant},
    {"_dispatch_after", assumed, do_after},
    {"_dispatch_time", constant},
};

}  // namespace

std::span<const HostFunction> dispatch_functions() {
  return functions;
}

}  // namespace metaldoctor
