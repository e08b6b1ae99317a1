// Loads and stores of the interpreter: stack slots, fields of objects, globals, constant data.
#include <fmt/format.h>

#include "scanners/code/interpreter.h"

namespace metaldoctor {
namespace {

bool is_pair(Op op) {
  return op == Op::load_pair || op == Op::load_pair_pre || op == Op::load_pair_post ||
         op == Op::store_pair || op == Op::store_pair_pre || op == Op::store_pair_post;
}

bool is_pre(Op op) {
  return op == Op::load_pre || op == Op::store_pre || op == Op::load_pair_pre ||
         op == Op::store_pair_pre;
}

bool is_post(Op op) {
  return op == Op::load_post || op == Op::store_post || op == Op::load_pair_post ||
         op == Op::store_pair_post;
}

/// Data that the program cannot change: constants in __TEXT and what dyld makes read-only.
bool is_constant(const Section& section) {
  return !section.is_code() && (section.segment == "__TEXT" || section.segment == "__DATA_CONST");
}

}  // namespace

/// The address an access goes to; writes the base register back where the form asks for it.
Interpreter::Place Interpreter::place(MachineState& state, const Insn& insn) {
  AbstractValue base = get(state, insn.rn);
  if (is_spread(base) && insn.rm == kNoReg) {
    if (insn.imm != 0 && !is_post(insn.op)) base = spread_over(base, number(insn.imm));
    if (is_pre(insn.op)) set(state, insn.rn, base, true);
    if (is_post(insn.op)) set(state, insn.rn, spread_over(base, number(insn.imm)), true);
    return {false, base.base, base.offset, is_spread(base)};
  }
  const bool linear = base.kind == AbstractValue::Kind::linear;
  Place out{linear, base.base, base.offset};
  if (insn.rm != kNoReg) {
    const AbstractValue index = get(state, insn.rm);
    const auto scaled =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(index.offset) << insn.shift);
    out.known = linear && is_number(index);
    out.element = linear && out.base != 1 && index.kind == AbstractValue::Kind::unknown;
    if (out.known)
      out.offset = static_cast<std::int64_t>(static_cast<std::uint64_t>(out.offset) +
                                             static_cast<std::uint64_t>(scaled));
    return out;
  }
  const auto moved = static_cast<std::int64_t>(static_cast<std::uint64_t>(base.offset) +
                                               static_cast<std::uint64_t>(insn.imm));
  if (!is_post(insn.op)) out.offset = moved;
  if (is_pre(insn.op) || is_post(insn.op))
    set(state, insn.rn, linear ? address(base.base, moved) : AbstractValue{}, true);
  if (const Relocation* relocation = program_.relocation(insn)) {
    // Object files: the page offset is the linker's to fill in.
    out.known = !relocation->undefined && relocation->target != 0;
    out.base = 0;
    out.offset = static_cast<std::int64_t>(relocation->target);
  }
  return out;
}

AbstractValue Interpreter::read_image(std::uint64_t vm, const Insn& insn) const {
  if (const Target* slot = program_.slot(vm)) {
    // The same target as where the slot is filled, so that the two paths join.
    if (slot->route == Route::registered_selector) return held(program_.registered(slot->name));
    if (slot->route == Route::looked_up) return held(program_.looked_up(slot->name.substr(1)));
    return held(slot);
  }
  const Section* section = program_.image().section_at(vm);
  if (!section || !is_constant(*section) || program_.image().is_object()) return {};
  const auto bytes = program_.image().bytes_from(vm);
  if (!bytes || bytes->size() < insn.size) return {};
  if (insn.size == 8) {
    // A pointer or a number: literal and constant sections hold plain numbers in __TEXT only.
    if (section->segment == "__TEXT") return number(*read_at<std::int64_t>(*bytes, 0));
    const Pointer pointer = program_.fixups().at(vm);
    if (program_.fixups().style() == Fixups::Style::opcodes &&
        pointer.kind == Pointer::Kind::address)
      return number(static_cast<std::int64_t>(pointer.address));
    return {};
  }
  if (insn.size == 4) {
    const auto raw = *read_at<std::uint32_t>(*bytes, 0);
    return number(insn.is_signed ? static_cast<std::int32_t>(raw) : std::int64_t{raw});
  }
  if (insn.size == 1 && !insn.is_signed) return number((*bytes)[0]);
  return {};
}

AbstractValue Interpreter::read(MachineState& state, const Place& at, const Insn& insn,
                                unsigned which) {
  if (at.several && which == 0 && !insn.vector) return read_several(state, at, insn);
  if (at.element && which == 0 && !insn.vector && insn.size == 8) {
    Base walk;
    walk.kind = Base::Kind::walk;
    walk.parent = at.base;
    walk.offset = at.offset;
    Base base;
    base.kind = Base::Kind::loaded;
    base.parent = values_.base(walk);
    base.at = insn.size;
    return address(values_.base(base), 0);
  }
  if (!at.known || insn.vector) return {};
  const std::int64_t offset = at.offset + static_cast<std::int64_t>(which) * insn.size;
  if (const Cell* cell = state.cell(at.base, offset)) {
    // A narrower or wider view of a truth value reads the same value; other views are lost.
    const bool same = cell->size == insn.size;
    return same ? cell->value : AbstractValue{};
  }
  if (at.base == 0) {
    const AbstractValue value = read_image(static_cast<std::uint64_t>(offset), insn);
    if (value.kind != AbstractValue::Kind::unknown) return value;
  }
  if (out_.known && at.base != 1 && which == 0)
    if (const auto found = out_.known->find(insn.address); found != out_.known->end())
      return expression(found->second);
  if (at.base == 1) return {};  // a stack slot that was not written, or was forgotten
  if (recording_) out_.loads.push_back({insn.address, at.base, offset, insn.size});
  Base base;
  base.kind = Base::Kind::loaded;
  base.parent = at.base;
  base.offset = offset;
  base.at = insn.size;
  return address(values_.base(base), 0);
}

/// One of two values.
AbstractValue Interpreter::united(const AbstractValue& a, const AbstractValue& b) {
  if (a == b) return a;
  std::vector<std::int64_t> numbers;
  for (const AbstractValue* value : {&a, &b}) {
    if (is_number(*value)) {
      numbers.push_back(value->offset);
    } else if (is_set(*value)) {
      const auto& more = values_.set(value->id);
      numbers.insert(numbers.end(), more.begin(), more.end());
    } else {
      return {};
    }
  }
  constexpr std::size_t kMaxUnited = 32;
  AbstractValue out;
  if (numbers.size() > kMaxUnited) return out;
  out.kind = AbstractValue::Kind::set;
  out.id = values_.set(std::move(numbers));
  return out;
}

/// What one of a few places holds; unknown unless all are known.
AbstractValue Interpreter::read_several(const MachineState& state, const Place& at,
                                        const Insn& insn) {
  std::optional<AbstractValue> out;
  for (const std::int64_t offset : values_.set(static_cast<std::uint32_t>(at.offset))) {
    const Cell* cell = state.cell(at.base, offset);
    if (!cell || cell->size != insn.size) return {};
    out = out ? united(*out, cell->value) : cell->value;
  }
  return out.value_or(AbstractValue{});
}

/// A store to one of a few places: each may keep what it had.
void Interpreter::write_several(MachineState& state, const Place& at, const Insn& insn) {
  const AbstractValue value = insn.vector ? AbstractValue{} : get(state, insn.rd);
  const std::vector<std::int64_t> offsets = values_.set(static_cast<std::uint32_t>(at.offset));
  for (const std::int64_t offset : offsets) {
    const Cell* cell = state.cell(at.base, offset);
    AbstractValue kept;
    if (cell && cell->size == insn.size)
      kept = united(cell->value, value);
    else if (!cell && values_.base(at.base).fresh)
      kept = value;
    state.store(at.base, offset, insn.size, kept);
  }
}

void Interpreter::load(MachineState& state, const Insn& insn) {
  const Place at = place(state, insn);
  // Read both before writing: a pair may overwrite its own base.
  const AbstractValue first = read(state, at, insn, 0);
  const AbstractValue second = is_pair(insn.op) ? read(state, at, insn, 1) : AbstractValue{};
  if (insn.vector) return;
  AbstractValue value = first;
  if (const Relocation* relocation = program_.relocation(insn))
    if (relocation->undefined)  // a GOT entry of an object file
      if (const Target* target = program_.symbol_target(relocation->symbol)) value = held(target);
  set(state, insn.rd, value, insn.wide || is_based(value));
  if (is_pair(insn.op)) set(state, insn.ra, second, insn.wide || is_based(second));
}

void Interpreter::load_literal(MachineState& state, const Insn& insn) {
  Place at{true, 0, static_cast<std::int64_t>(insn.target)};
  if (const Relocation* relocation = program_.relocation(insn)) {
    if (relocation->undefined) {
      const Target* target = program_.symbol_target(relocation->symbol);
      return set(state, insn.rd, target ? held(target) : AbstractValue{}, true);
    }
    at.offset = static_cast<std::int64_t>(relocation->target);
  }
  const AbstractValue value = read(state, at, insn, 0);
  set(state, insn.rd, value, insn.wide || is_based(value));
}

void Interpreter::write(MachineState& state, const Place& at, const Insn& insn, std::uint8_t reg) {
  AbstractValue value = insn.vector ? AbstractValue{} : get(state, reg);
  value.stale = false;
  state.store(at.base, at.offset, insn.size, value);
  if (!recording_) return;
  const bool answers =
      value.kind == AbstractValue::Kind::expr && expressions_.is_interesting(value.id);
  if ((answers || value.kind == AbstractValue::Kind::set) && at.base != 1)
    out_.stores.push_back({insn.address, at.base, at.offset, insn.size, value});
  const Target* kept = value.kind == AbstractValue::Kind::target ? value.target() : nullptr;
  if (at.base == 0 && kept && (!kept->imported || kept->route == Route::looked_up))
    out_.kept_targets.emplace_back(static_cast<std::uint64_t>(at.offset), kept);
}

void Interpreter::store(MachineState& state, const Insn& insn) {
  // The values first: a pre-indexed store of its own base stores the old one.
  Place at = place(state, insn);
  if (at.several && !is_pair(insn.op)) return write_several(state, at, insn);
  if (!at.known) return;  // to an object nobody else here points to: an assumption, see docs
  write(state, at, insn, insn.rd);
  if (!is_pair(insn.op)) return;
  at.offset += insn.size;
  write(state, at, insn, insn.ra);
}

}  // namespace metaldoctor
