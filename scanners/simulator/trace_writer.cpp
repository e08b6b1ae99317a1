// What is left of a process when it ends: its trace.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "scanners/simulator/process.h"

namespace metaldoctor {
namespace {

constexpr std::uint64_t max_written = std::uint64_t{4} << 20;
constexpr std::size_t max_spans = 200'000;
constexpr std::uint64_t word = 8;

/// The object that holds an address, its start and its end.
struct Holder {
  std::string name;
  std::uint64_t start = 0, end = 0;
};

std::optional<Holder> holder_of(Process& process, std::uint64_t address) {
  if (const SimLoaded* image = process.images.at(address)) {
    const std::uint64_t base = image->address(image->image->base());
    return Holder{image->leaf, base, image->address(image->lowest) + image->span};
  }
  // What was freed means nothing any more.
  const auto [start, block] = process.heap.around(address);
  if (!block) return std::nullopt;
  return Holder{fmt::format("heap({}#{})", block->site, block->ordinal), start,
                start + block->size};
}

void add_write(Process& process, const Holder& holder, std::uint64_t from, std::uint64_t to,
               std::vector<SimWrite>& writes) {
  SimWrite write;
  write.object = holder.name;
  write.offset = from - holder.start;
  write.bytes.resize(to - from);
  process.memory.read(from, write.bytes);
  for (std::uint64_t at = from / word * word; at < to; at += word) {
    const auto value = process.memory.load<std::uint64_t>(at);
    if (at < holder.start || !value || !process.is_objc_pointer(*value)) continue;
    write.pointers.emplace(at - holder.start, process.name_of(*value));
  }
  writes.push_back(std::move(write));
}

std::vector<SimWrite> collect_writes(Process& process) {
  std::vector<SimWrite> writes;
  std::uint64_t total = 0;
  const auto spans = process.memory.written(max_spans);
  if (spans.size() >= max_spans) process.assume("more memory was written than is recorded");
  for (const Memory::Span& span : spans) {
    std::uint64_t at = span.address;
    const std::uint64_t end = span.address + span.size;
    while (at < end) {
      const auto holder = holder_of(process, at);
      if (!holder) {
        at = (at / 16 + 1) * 16;  // the heap's unit
        continue;
      }
      const std::uint64_t stop = std::min(end, holder->end);
      total += stop - at;
      if (total > max_written) {
        process.assume("more memory was written than is recorded");
        return writes;
      }
      add_write(process, *holder, at, stop, writes);
      at = stop;
    }
  }
  return writes;
}

void collect_overrides(Process& process, std::vector<SimOverride>& overrides) {
  const auto look = [&](const ObjcClass& cls, const auto& methods, const char* sign) {
    for (const auto& [selector, method] : methods) {
      if (method.imp == method.original) continue;
      overrides.push_back({sign + cls.name, selector, method.types, process.name_of(method.imp),
                           method.original == 0});
    }
  };
  for (const ObjcClass& cls : process.objc.classes()) {
    look(cls, cls.methods, "");
    look(cls, cls.class_methods, "+");
  }
  std::ranges::sort(overrides, {},
                    [](const SimOverride& o) { return std::tie(o.class_name, o.selector); });
}

void collect_imports(const std::deque<Trap>& traps, Process& process,
                     std::vector<SimImport>& imports) {
  for (const Trap& trap : traps) {
    if (trap.calls == 0 || trap.method || trap.is_return) continue;
    const Fidelity fidelity = trap.function ? trap.function->fidelity : Fidelity::unknown;
    imports.push_back({trap.name, fidelity, trap.calls});
    if (fidelity == Fidelity::unknown)
      process.assume(
          fmt::format("{} is not known to the simulator: it did nothing and gave 0", trap.name));
    if (fidelity == Fidelity::assumed)
      process.assume(fmt::format("{} behaves as assumed, not as on macOS", trap.name));
  }
  std::ranges::sort(imports, {}, &SimImport::name);
}

}  // namespace

Trace Process::finish() {
  Trace trace;
  trace.id = run.id;
  trace.stop = stop_ && stop_->kind != "exit" ? stop_ : std::nullopt;
  trace.results = results_;
  trace.exit_status = exit_status_;
  trace.instructions = machine.instructions();
  for (const std::uint64_t block : machine.blocks()) trace.path.push_back(name_of(block));
  trace.walk = machine.walk();
  if (!queued.empty()) assume(fmt::format("{} blocks in the background never ran", queued.size()));
  collect_imports(traps_, *this, trace.imports);
  trace.writes = collect_writes(*this);
  collect_overrides(*this, trace.overrides);
  recorder.finish(trace, [&](std::string_view text) { return comparable(text); });
  trace.files_written = files_written;
  // What getenv gave may have been edited where it lies; children would see that.
  for (const auto& [name, value] : environment) {
    const auto given = environment_texts.find(name + "=" + value);
    const auto text =
        given == environment_texts.end() ? std::nullopt : memory.cstring(given->second);
    trace.environment[name] = text.value_or(value);
  }
  return trace;
}

}  // namespace metaldoctor
