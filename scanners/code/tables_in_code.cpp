#include "scanners/code/tables_in_code.h"

#include <algorithm>

namespace metaldoctor {
namespace {

constexpr std::int64_t kElement = 8;  // NSInteger and NSUInteger

bool is_constant(const Section& section) {
  return !section.is_code() && (section.segment == "__TEXT" || section.segment == "__DATA_CONST");
}

}  // namespace

std::optional<TableWalk> table_walk(const FunctionTrace& trace, const AbstractValue& value) {
  if (!is_based(value) || value.offset != 0) return std::nullopt;
  const Base& loaded = trace.values.base(value.base);
  if (loaded.kind != Base::Kind::loaded) return std::nullopt;
  const Base& walk = trace.values.base(loaded.parent);
  if (walk.kind != Base::Kind::walk) return std::nullopt;
  TableWalk out;
  out.base = loaded.parent;
  out.offset = loaded.offset;
  out.first = walk.offset + loaded.offset;
  const Base& start = trace.values.base(walk.parent);
  if (walk.parent == 0)
    out.address = static_cast<std::uint64_t>(out.first);
  else if (start.kind == Base::Kind::parameter)
    out.parameter = static_cast<unsigned>(start.at);
  else
    return std::nullopt;
  return out;
}

std::optional<std::vector<std::int64_t>> table_elements(const Program& program,
                                                        std::uint64_t address, std::size_t count) {
  const Section* section = program.image().section_at(address);
  const auto bytes = program.image().bytes_from(address);
  if (!section || !is_constant(*section) || !bytes || count == 0 || count > kMaxTable ||
      bytes->size() / kElement < count)
    return std::nullopt;
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < count; ++i)
    out.push_back(*read_at<std::int64_t>(*bytes, i * kElement));
  return out;
}

std::optional<std::vector<std::int64_t>> walked_elements(const Program& program,
                                                         const FunctionTrace& trace,
                                                         const TableWalk& walk) {
  if (walk.parameter) return std::nullopt;
  for (const TableEnd& end : trace.table_ends) {
    if (end.base != walk.base) continue;
    // The pointer takes `start`, start + 8 ... until it is at `last`; there the loop ends.
    const std::int64_t start = trace.values.base(walk.base).offset;
    const std::int64_t last = end.end - end.offset;
    if (last < start || (last - start) % kElement != 0) continue;
    const auto rounds = static_cast<std::size_t>((last - start) / kElement) + 1;
    if (auto found = table_elements(program, walk.address, rounds)) return found;
  }
  return std::nullopt;
}

}  // namespace metaldoctor
