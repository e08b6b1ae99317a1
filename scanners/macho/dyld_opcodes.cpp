#include "scanners/macho/dyld_opcodes.h"

#include <fmt/format.h>
#include <llvm/BinaryFormat/MachO.h>

#include <algorithm>
#include <tuple>

namespace metaldoctor {
namespace macho = llvm::MachO;

namespace {
constexpr std::uint8_t kBindThreaded = 0xd0;  // BIND_OPCODE_THREADED; not in LLVM's header
}

struct OpcodeReader::State {
  State(Bytes stream, std::uint64_t at) : cursor(stream), stream_offset(at) {}
  Cursor cursor;
  std::uint64_t stream_offset;  ///< in the slice
  const Segment* segment = nullptr;
  std::uint64_t offset = 0;  ///< in the segment
  std::string_view name;
  int library = 0;
  bool weak = false;
  std::int64_t addend = 0;
  std::uint32_t import = UINT32_MAX;  ///< of `name`, once one was bound
};

OpcodeReader::OpcodeReader(const Image& image) : image_(image), budget_(65'536) {
  // Each slot once as a rebase, bind, weak bind and lazy bind is more than any linker writes.
  for (const Segment& segment : image.segments()) budget_ += segment.file_size / 2;
}

tl::unexpected<Diagnostic> OpcodeReader::bad(const State& state, std::string what) const {
  return malformed("fixups-malformed", image_.where(), state.stream_offset + state.cursor.offset(),
                   std::move(what));
}

Result<void> OpcodeReader::set_segment(State& state, unsigned index, std::uint64_t offset) {
  if (index >= image_.segments().size())
    return bad(state, fmt::format("expected a segment below {}, found {}", image_.segments().size(),
                                  index));
  state.segment = &image_.segments()[index];
  state.offset = offset;
  return {};
}

Result<void> OpcodeReader::repeat(State& state, std::uint64_t count, std::uint64_t skip,
                                  const std::function<void(std::uint64_t)>& visit) {
  if (count == 0) return {};
  if (!state.segment) return bad(state, "expected a segment to be set before the first fixup");
  const std::uint64_t size = state.segment->file_size;
  const std::uint64_t stride = skip + 8;
  const bool inside = stride >= 8 && state.offset <= size && size - state.offset >= 8 &&
                      (count == 1 || (size - state.offset - 8) / stride >= count - 1);
  if (!inside)
    return bad(state, fmt::format("expected {} fixups from {:#x} inside segment {} of {:#x} bytes",
                                  count, state.offset, state.segment->name, size));
  // Linkers put pointers in sections only; a slot between them is a sign of damage.
  const std::uint64_t first = state.segment->vm_address + state.offset;
  if (!image_.section_at(first) || !image_.section_at(first + (count - 1) * stride))
    return bad(state,
               fmt::format("expected fixups in a section, found {} from {:#x}", count, first));
  if (count > budget_) return bad(state, "expected each pointer to be fixed up once");
  budget_ -= count;
  for (std::uint64_t i = 0; i < count; ++i)
    visit(state.segment->vm_address + state.offset + i * stride);
  state.offset += count * stride;  // wraps only past the segment, where the next use is refused
  return {};
}

Result<void> OpcodeReader::rebase_step(State& state, std::uint8_t opcode, std::uint8_t immediate,
                                       const std::function<void(std::uint64_t)>& visit) {
  Cursor& cursor = state.cursor;
  switch (opcode) {
    case macho::REBASE_OPCODE_SET_TYPE_IMM:
      return {};
    case macho::REBASE_OPCODE_SET_SEGMENT_AND_OFFSET_ULEB:
      return set_segment(state, immediate, cursor.uleb());
    case macho::REBASE_OPCODE_ADD_ADDR_ULEB:
      state.offset += cursor.uleb();
      return {};
    case macho::REBASE_OPCODE_ADD_ADDR_IMM_SCALED:
      state.offset += immediate * 8u;
      return {};
    case macho::REBASE_OPCODE_DO_REBASE_IMM_TIMES:
      return repeat(state, immediate, 0, visit);
    case macho::REBASE_OPCODE_DO_REBASE_ULEB_TIMES:
      return repeat(state, cursor.uleb(), 0, visit);
    case macho::REBASE_OPCODE_DO_REBASE_ADD_ADDR_ULEB:
      if (auto ok = repeat(state, 1, 0, visit); !ok) return ok;
      state.offset += cursor.uleb();
      return {};
    case macho::REBASE_OPCODE_DO_REBASE_ULEB_TIMES_SKIPPING_ULEB: {
      const std::uint64_t count = cursor.uleb();
      return repeat(state, count, cursor.uleb(), visit);
    }
    default:
      return bad(state, fmt::format("expected a rebase opcode, found {:#04x}", opcode));
  }
}

Result<void> OpcodeReader::run_rebases(Range range,
                                       const std::function<void(std::uint64_t)>& visit) {
  State state(image_.part(range), range.offset);
  while (!state.cursor.at_end()) {
    const std::uint8_t byte = state.cursor.u8();
    const std::uint8_t opcode = byte & macho::REBASE_OPCODE_MASK;
    if (opcode == macho::REBASE_OPCODE_DONE) break;
    if (auto ok = rebase_step(state, opcode, byte & macho::REBASE_IMMEDIATE_MASK, visit); !ok)
      return ok;
  }
  if (!state.cursor.ok()) return bad(state, "expected the rebase opcodes to end inside their part");
  return {};
}

Result<void> OpcodeReader::walk_rebases(const std::function<void(std::uint64_t)>& visit) {
  return run_rebases(image_.linkedit().rebase, visit);
}

Result<void> OpcodeReader::bind_step(State& state, std::uint8_t opcode, std::uint8_t immediate,
                                     const std::function<void(std::uint64_t)>& visit) {
  Cursor& cursor = state.cursor;
  switch (opcode) {
    case macho::BIND_OPCODE_SET_DYLIB_ORDINAL_IMM:
      state.library = immediate;
      return {};
    case macho::BIND_OPCODE_SET_DYLIB_ORDINAL_ULEB:
      state.library = static_cast<int>(std::min<std::uint64_t>(cursor.uleb(), INT32_MAX));
      return {};
    case macho::BIND_OPCODE_SET_DYLIB_SPECIAL_IMM:
      state.library = immediate ? static_cast<std::int8_t>(0xf0 | immediate) : 0;
      return {};
    case macho::BIND_OPCODE_SET_SYMBOL_TRAILING_FLAGS_IMM:
      state.name = cursor.cstring();
      state.weak = immediate & macho::BIND_SYMBOL_FLAGS_WEAK_IMPORT;
      state.import = UINT32_MAX;
      return {};
    case macho::BIND_OPCODE_SET_TYPE_IMM:
      return {};
    case macho::BIND_OPCODE_SET_ADDEND_SLEB:
      state.addend = cursor.sleb();
      return {};
    case macho::BIND_OPCODE_SET_SEGMENT_AND_OFFSET_ULEB:
      return set_segment(state, immediate, cursor.uleb());
    case macho::BIND_OPCODE_ADD_ADDR_ULEB:
      state.offset += cursor.uleb();
      return {};
    case macho::BIND_OPCODE_DO_BIND:
      return repeat(state, 1, 0, visit);
    case macho::BIND_OPCODE_DO_BIND_ADD_ADDR_ULEB:
      if (auto ok = repeat(state, 1, 0, visit); !ok) return ok;
      state.offset += cursor.uleb();
      return {};
    case macho::BIND_OPCODE_DO_BIND_ADD_ADDR_IMM_SCALED:
      if (auto ok = repeat(state, 1, 0, visit); !ok) return ok;
      state.offset += immediate * 8u;
      return {};
    case macho::BIND_OPCODE_DO_BIND_ULEB_TIMES_SKIPPING_ULEB: {
      const std::uint64_t count = cursor.uleb();
      return repeat(state, count, cursor.uleb(), visit);
    }
    case kBindThreaded:
      return fail(
          Fault::input, "macho-unsupported", image_.where(),
          "expected plain bind opcodes, found threaded ones (arm64e before chained fixups)");
    default:
      return bad(state, fmt::format("expected a bind opcode, found {:#04x}", opcode));
  }
}

Result<void> OpcodeReader::run_binds(Stream stream, Range range, Fixups& out) {
  State state(image_.part(range), range.offset);
  const auto record = [&](std::uint64_t slot) {
    if (state.import == UINT32_MAX) {
      state.import = static_cast<std::uint32_t>(out.imports_.size());
      out.imports_.push_back({state.name, state.library, state.weak});
    }
    out.binds_.push_back({slot, state.import, state.addend});
  };
  while (!state.cursor.at_end()) {
    const std::uint8_t byte = state.cursor.u8();
    const std::uint8_t opcode = byte & macho::BIND_OPCODE_MASK;
    // The lazy stream has a DONE after each symbol, and padding; the others end at the first.
    if (opcode == macho::BIND_OPCODE_DONE) {
      if (stream != Stream::lazy) break;
      continue;
    }
    // A weak definition: a name without a slot.
    if (auto ok = bind_step(state, opcode, byte & macho::BIND_IMMEDIATE_MASK, record); !ok)
      return ok;
  }
  if (!state.cursor.ok()) return bad(state, "expected the bind opcodes to end inside their part");
  return {};
}

Result<void> OpcodeReader::read_binds(Fixups& out) {
  out.style_ = Fixups::Style::opcodes;
  const auto& linkedit = image_.linkedit();
  if (auto ok = run_binds(Stream::bind, linkedit.bind, out); !ok) return ok;
  if (auto ok = run_binds(Stream::lazy, linkedit.lazy_bind, out); !ok) return ok;
  if (auto ok = run_binds(Stream::weak, linkedit.weak_bind, out); !ok) return ok;
  std::sort(out.binds_.begin(), out.binds_.end(), [](const auto& a, const auto& b) {
    return std::tie(a.slot, a.import) < std::tie(b.slot, b.import);
  });
  return {};
}

}  // namespace metaldoctor
