#include "scanners/code/interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace metaldoctor {
namespace {

constexpr std::size_t kMaxSet = 32;

std::int64_t truncated(std::int64_t value, bool wide) {
  return wide ? value : static_cast<std::int64_t>(static_cast<std::uint32_t>(value));
}

bool is_expr(const AbstractValue& value) {
  return value.kind == AbstractValue::Kind::expr;
}

/// Operations on plain numbers; shifts were applied before.
std::optional<std::int64_t> compute(Op op, std::int64_t a, std::int64_t b) {
  const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
  switch (op) {
    case Op::add:
    case Op::add_reg:
      return static_cast<std::int64_t>(x + y);
    case Op::sub:
    case Op::sub_reg:
      return static_cast<std::int64_t>(x - y);
    case Op::and_imm:
    case Op::and_reg:
      return static_cast<std::int64_t>(x & y);
    case Op::orr_imm:
    case Op::orr_reg:
      return static_cast<std::int64_t>(x | y);
    case Op::eor_imm:
    case Op::eor_reg:
      return static_cast<std::int64_t>(x ^ y);
    case Op::bic_reg:
      return static_cast<std::int64_t>(x & ~y);
    default:
      return std::nullopt;
  }
}

}  // namespace

const Interpreter::Row Interpreter::kRows[] = {
    {Op::other, &Interpreter::other},
    {Op::nop, &Interpreter::nothing},
    {Op::trap, &Interpreter::nothing},
    {Op::ret, &Interpreter::nothing},
    {Op::adr, &Interpreter::form_address},
    {Op::adrp, &Interpreter::form_address},
    {Op::mov_wide, &Interpreter::move_wide},
    {Op::mov_not, &Interpreter::move_wide},
    {Op::mov_keep, &Interpreter::move_wide},
    {Op::add, &Interpreter::add_immediate},
    {Op::sub, &Interpreter::add_immediate},
    {Op::add_reg, &Interpreter::add_register},
    {Op::sub_reg, &Interpreter::add_register},
    {Op::and_imm, &Interpreter::logical},
    {Op::and_reg, &Interpreter::logical},
    {Op::orr_imm, &Interpreter::logical},
    {Op::orr_reg, &Interpreter::logical},
    {Op::eor_imm, &Interpreter::logical},
    {Op::eor_reg, &Interpreter::logical},
    {Op::bic_reg, &Interpreter::logical},
    {Op::ubfm, &Interpreter::bitfield},
    {Op::sbfm, &Interpreter::bitfield},
    {Op::load, &Interpreter::load},
    {Op::load_pre, &Interpreter::load},
    {Op::load_post, &Interpreter::load},
    {Op::load_reg, &Interpreter::load},
    {Op::load_pair, &Interpreter::load},
    {Op::load_pair_pre, &Interpreter::load},
    {Op::load_pair_post, &Interpreter::load},
    {Op::load_literal, &Interpreter::load_literal},
    {Op::store, &Interpreter::store},
    {Op::store_pre, &Interpreter::store},
    {Op::store_post, &Interpreter::store},
    {Op::store_reg, &Interpreter::store},
    {Op::store_pair, &Interpreter::store},
    {Op::store_pair_pre, &Interpreter::store},
    {Op::store_pair_post, &Interpreter::store},
    {Op::csel, &Interpreter::conditional_select},
    {Op::csinc, &Interpreter::conditional_select},
    {Op::csinv, &Interpreter::conditional_select},
    {Op::csneg, &Interpreter::conditional_select},
    {Op::ccmp_imm, &Interpreter::conditional_compare},
    {Op::ccmp_reg, &Interpreter::conditional_compare},
    {Op::b, &Interpreter::branch},
    {Op::br, &Interpreter::branch},
    {Op::b_cond, &Interpreter::branch},
    {Op::cbz, &Interpreter::branch},
    {Op::cbnz, &Interpreter::branch},
    {Op::tbz, &Interpreter::branch},
    {Op::tbnz, &Interpreter::branch},
    {Op::bl, &Interpreter::call},
    {Op::blr, &Interpreter::call},
};

const std::array<Interpreter::Handler, 64>& Interpreter::handlers() {
  static const std::array<Handler, 64> table = [] {
    std::array<Handler, 64> out;
    out.fill(&Interpreter::other);
    for (const Row& row : kRows) out[static_cast<std::size_t>(row.op)] = row.handler;
    return out;
  }();
  return table;
}

MachineState Interpreter::entry_state() {
  MachineState state;
  const auto parameter = [&](std::uint8_t reg, std::uint8_t index) {
    Base base;
    base.kind = Base::Kind::parameter;
    base.at = index;
    state.regs[reg] = address(values_.base(base), 0);
  };
  for (std::uint8_t i = 0; i < arch_.argument_count; ++i) parameter(arch_.arguments[i], i);
  if (arch_.structure_result != kNoReg) parameter(arch_.structure_result, arch_.structure_result);
  state.regs[kSp] = address(1, 0);
  return state;
}

void Interpreter::step(MachineState& state, const Insn& insn) {
  (this->*handlers()[static_cast<std::size_t>(insn.op)])(state, insn);
}

AbstractValue Interpreter::get(const MachineState& state, std::uint8_t reg) const {
  if (reg == kZero) return number(0);
  return reg < 32 ? state.regs[reg] : AbstractValue{};
}

void Interpreter::set(MachineState& state, std::uint8_t reg, AbstractValue value, bool wide) {
  if (reg >= 32) return;
  if (is_number(value)) value.offset = truncated(value.offset, wide);
  state.regs[reg] = value;
}

void Interpreter::other(MachineState& state, const Insn& insn) {
  set(state, insn.rd, {}, true);
  set(state, insn.ra, {}, true);
  if (insn.sets_flags) state.flags = {};
  // An atomic or vector store to memory that is not followed: fields may have changed.
  if (insn.size) state.forget([](const Cell& cell) { return cell.base != 1; });
}

void Interpreter::form_address(MachineState& state, const Insn& insn) {
  if (const Relocation* relocation = program_.relocation(insn)) {
    const bool defined = !relocation->undefined && relocation->target;
    set(state, insn.rd,
        defined ? number(static_cast<std::int64_t>(relocation->target)) : AbstractValue{}, true);
    return;
  }
  set(state, insn.rd, number(static_cast<std::int64_t>(insn.target)), true);
  if (recording_ && insn.op == Op::adr)
    out_.mentions.push_back({insn.address, insn.target, nullptr});
}

void Interpreter::move_wide(MachineState& state, const Insn& insn) {
  const auto bits = static_cast<std::uint64_t>(insn.imm) << insn.shift;
  if (insn.op == Op::mov_wide) {
    set(state, insn.rd, number(static_cast<std::int64_t>(bits)), insn.wide);
  } else if (insn.op == Op::mov_not) {
    set(state, insn.rd, number(static_cast<std::int64_t>(~bits)), insn.wide);
  } else {
    AbstractValue old = get(state, insn.rd);
    if (!is_number(old)) return set(state, insn.rd, {}, true);
    const std::uint64_t kept =
        static_cast<std::uint64_t>(old.offset) & ~(std::uint64_t{0xffff} << insn.shift);
    set(state, insn.rd, number(static_cast<std::int64_t>(kept | bits)), insn.wide);
  }
}

AbstractValue Interpreter::combine_numbers(Op op, const AbstractValue& a, const AbstractValue& b,
                                           bool wide) {
  const auto numbers = [&](const AbstractValue& v) {
    return is_set(v) ? values_.set(v.id) : std::vector<std::int64_t>{v.offset};
  };
  std::vector<std::int64_t> out;
  for (const std::int64_t x : numbers(a))
    for (const std::int64_t y : numbers(b))
      if (const auto z = compute(op, x, y)) out.push_back(truncated(*z, wide));
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  if (out.empty() || out.size() > kMaxSet) return {};
  if (out.size() == 1) return number(out[0]);
  AbstractValue value;
  value.kind = AbstractValue::Kind::set;
  value.id = values_.set(out);
  return value;
}

AbstractValue Interpreter::combine(Op op, const AbstractValue& a, const AbstractValue& b,
                                   bool wide) {
  const bool plus = op == Op::add || op == Op::add_reg, minus = op == Op::sub || op == Op::sub_reg;
  if ((is_number(a) || is_set(a)) && (is_number(b) || is_set(b)))
    return combine_numbers(op, a, b, wide);
  if (is_based(a) && is_number(b) && (plus || minus))
    return address(a.base, *compute(op, a.offset, b.offset));
  if (plus && is_number(a) && is_based(b)) return address(b.base, *compute(op, b.offset, a.offset));
  if (op == Op::orr_reg && is_number(a) && a.offset == 0) return b;  // mov
  if (plus && ((is_based(a) && is_set(b)) || (is_set(a) && is_based(b)) ||
               (is_spread(a) && is_number(b)) || (is_number(a) && is_spread(b))))
    return is_set(a) || is_number(a) ? spread_over(b, a) : spread_over(a, b);
  if (!is_expr(a) && !is_expr(b)) return {};
  const bool booleans = (is_expr(a) ? expressions_.is_boolean(a.id) : is_number(a)) &&
                        (is_expr(b) ? expressions_.is_boolean(b.id) : is_number(b));
  const auto boolean = [&](const AbstractValue& v) {
    return is_expr(v) ? v.id : expressions_.constant((v.offset & 1) != 0);
  };
  const auto is_sum = [&](const AbstractValue& v) {
    return is_number(v) || (is_expr(v) && !expressions_.is_boolean(v.id));
  };
  AbstractValue out;
  if (booleans && (op == Op::orr_reg || op == Op::orr_imm))
    out = expression(expressions_.either(boolean(a), boolean(b)));
  else if (booleans && (op == Op::and_reg || op == Op::and_imm))
    out = expression(expressions_.both(boolean(a), boolean(b)));
  else if (booleans && (op == Op::eor_reg || op == Op::eor_imm))
    out =
        expression(expressions_.select(boolean(a), expressions_.negation(boolean(b)), boolean(b)));
  else if (booleans && op == Op::bic_reg)
    out = expression(expressions_.both(boolean(a), expressions_.negation(boolean(b))));
  else if ((plus || minus) && is_sum(a) && is_sum(b))
    out = expression(expressions_.arithmetic(plus ? '+' : '-', as_expression(a), as_expression(b)));
  else if (op == Op::and_imm && is_number(b) && b.offset == 0xff)
    out = a;
  out.stale = a.stale || b.stale;
  return out;
}

/// An address plus one of a few numbers, or the other way round.
AbstractValue Interpreter::spread_over(const AbstractValue& address, const AbstractValue& numbers) {
  const std::vector<std::int64_t> none{numbers.offset};
  const auto& plus = is_set(numbers) ? values_.set(numbers.id) : none;
  const auto places = is_spread(address) ? values_.set(static_cast<std::uint32_t>(address.offset))
                                         : std::vector<std::int64_t>{address.offset};
  std::vector<std::int64_t> offsets;
  for (const std::int64_t place : places)
    for (const std::int64_t more : plus) offsets.push_back(*compute(Op::add, place, more));
  if (offsets.size() > kMaxSet) return {};
  return spread(address.base, values_.set(std::move(offsets)));
}

void Interpreter::note_table_end(const AbstractValue& a, const AbstractValue& b) {
  const auto walks = [&](const AbstractValue& value) {
    return is_based(value) && values_.base(value.base).kind == Base::Kind::walk &&
           values_.base(value.base).parent == 0;
  };
  if (walks(a) && is_number(b)) out_.table_ends.push_back({a.base, a.offset, b.offset});
  if (walks(b) && is_number(a)) out_.table_ends.push_back({b.base, b.offset, a.offset});
}

/// A number, one of a few numbers, or a truth value, shifted left.
AbstractValue Interpreter::shifted(const AbstractValue& value, std::uint8_t shift) {
  const auto up = [&](std::int64_t n) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(n) << shift);
  };
  if (is_number(value)) return number(up(value.offset));
  const bool truth = is_expr(value) && expressions_.is_boolean(value.id);
  if (!is_set(value) && !truth) return {};
  std::vector<std::int64_t> numbers{0, 1};
  if (is_set(value)) numbers = values_.set(value.id);
  for (std::int64_t& n : numbers) n = up(n);
  AbstractValue out;
  out.kind = AbstractValue::Kind::set;
  out.id = values_.set(std::move(numbers));
  return out;
}

void Interpreter::add_immediate(MachineState& state, const Insn& insn) {
  const AbstractValue left = get(state, insn.rn), right = number(insn.imm);
  if (insn.sets_flags)
    state.flags = {FlagState::Kind::compare,
                   left,
                   insn.op == Op::sub ? right : number(-insn.imm),
                   1,
                   0,
                   insn.address};
  if (insn.rd == kZero || insn.rd == kNoReg) return;
  AbstractValue value = combine(insn.op, left, right, insn.wide);
  const Relocation* relocation =
      arch_.kind == Arch::Kind::arm64 ? program_.relocation(insn) : nullptr;
  if (relocation)
    value = !relocation->undefined && relocation->target
                ? number(static_cast<std::int64_t>(relocation->target))
                : AbstractValue{};
  set(state, insn.rd, value, insn.wide);
  if (recording_ && is_number(value) && insn.op == Op::add && insn.wide)
    out_.mentions.push_back({insn.address, static_cast<std::uint64_t>(value.offset), nullptr});
}

void Interpreter::add_register(MachineState& state, const Insn& insn) {
  const AbstractValue left = get(state, insn.rn);
  AbstractValue right = get(state, insn.rm);
  if (insn.shift || insn.odd_shift)
    right = insn.odd_shift ? AbstractValue{} : shifted(right, insn.shift);
  if (insn.sets_flags && recording_) note_table_end(left, right);
  if (insn.sets_flags)
    state.flags = insn.op == Op::sub_reg
                      ? FlagState{FlagState::Kind::compare, left, right, 1, 0, insn.address}
                      : FlagState{FlagState::Kind::unknown, {}, {}, 1, 0, insn.address};
  if (insn.rd != kZero) set(state, insn.rd, combine(insn.op, left, right, insn.wide), insn.wide);
}

void Interpreter::logical(MachineState& state, const Insn& insn) {
  const AbstractValue left = get(state, insn.rn);
  AbstractValue right = insn.rm == kNoReg ? number(insn.imm) : get(state, insn.rm);
  if (insn.rm != kNoReg && (insn.shift || insn.odd_shift))
    right = is_number(right) && !insn.odd_shift
                ? number(static_cast<std::int64_t>(static_cast<std::uint64_t>(right.offset)
                                                   << insn.shift))
                : AbstractValue{};
  const AbstractValue value = combine(insn.op, left, right, insn.wide);
  if (insn.sets_flags) {
    state.flags = {FlagState::Kind::test, value, {}, 1, 0, insn.address};
  }
  // An aligned stack pointer: what is above it is reached through the frame pointer.
  if (insn.rd == kSp && insn.op == Op::and_imm && is_based(left) && left.base == 1)
    return set(state, kSp, address(1, left.offset & insn.imm), true);
  if (insn.rd != kZero) set(state, insn.rd, value, insn.wide);
}

void Interpreter::bitfield(MachineState& state, const Insn& insn) {
  const AbstractValue value = get(state, insn.rn);
  const unsigned top = insn.wide ? 63 : 31;
  const auto immr = static_cast<unsigned>(insn.imm), imms = unsigned{insn.imms};
  // uxtb, uxth, sxtw: a truth value and a small parameter stay what they are.
  if (immr == 0 && imms >= 7 && !is_number(value)) return set(state, insn.rd, value, true);
  if (immr == 0 && imms == 0 && is_expr(value) && expressions_.is_boolean(value.id) &&
      insn.op == Op::ubfm)
    return set(state, insn.rd, value, true);
  if (is_number(value)) {
    const auto raw = static_cast<std::uint64_t>(truncated(value.offset, insn.wide));
    std::uint64_t out = 0;
    if (imms >= immr) {  // extract
      const unsigned width = imms - immr + 1;
      out = raw >> immr;
      if (width < 64) {
        out &= (std::uint64_t{1} << width) - 1;
        if (insn.op == Op::sbfm && (out >> (width - 1)) & 1) out |= ~std::uint64_t{0} << width;
      }
      return set(state, insn.rd, number(static_cast<std::int64_t>(out)), insn.wide);
    }
    if (insn.op == Op::ubfm && imms + 1 == immr)  // lsl
      return set(state, insn.rd, number(static_cast<std::int64_t>(raw << (top - imms))), insn.wide);
    return set(state, insn.rd, {}, true);
  }
  // lsr of an answer is a division.
  if (is_expr(value) && !expressions_.is_boolean(value.id) && insn.op == Op::ubfm && imms == top &&
      immr < 63) {
    const ExprId divisor = expressions_.number(std::int64_t{1} << immr);
    return set(state, insn.rd, expression(expressions_.arithmetic('/', value.id, divisor)), true);
  }
  set(state, insn.rd, {}, true);
}

ExprId Interpreter::as_expression(const AbstractValue& value) const {
  if (is_expr(value)) return value.id;
  if (is_number(value)) return expressions_.number(value.offset);
  return kNoExpr;
}

std::string Interpreter::reason(const AbstractValue& value, std::uint64_t at) const {
  if (is_based(value)) {
    const std::string base = values_.describe(value.base);
    return value.offset ? fmt::format("{} + {:#x}", base, value.offset) : base;
  }
  return fmt::format("value tested at {:#x}", at);
}

ExprId Interpreter::truth(const AbstractValue& value, std::uint64_t at) {
  if (is_number(value)) return expressions_.constant(value.offset != 0);
  if (is_expr(value))
    return expressions_.is_boolean(value.id)
               ? value.id
               : expressions_.compare(Compare::not_equal, value.id, expressions_.number(0));
  return expressions_.unknown(reason(value, at));
}

namespace {

constexpr Compare kConditionCompare[] = {
    Compare::equal,   Compare::not_equal,  Compare::greater_equal,
    Compare::less,    Compare::less,       Compare::greater_equal,
    Compare::equal,   Compare::equal,  // mi pl vs vc
    Compare::greater, Compare::less_equal, Compare::greater_equal,
    Compare::less,    Compare::greater,    Compare::less_equal,
};

}  // namespace

ExprId Interpreter::compare_flags(const FlagState& flags, std::uint8_t condition) {
  const std::string vague = fmt::format("comparison at {:#x}", flags.at);
  const bool negative = condition & 1;
  if (flags.kind == FlagState::Kind::unknown || condition >= 14 || condition == vs ||
      condition == vc) {
    const ExprId id =
        expressions_.unknown(vague + (condition < 2 ? "" : fmt::format(" ({})", condition / 2)));
    return negative ? expressions_.negation(id) : id;
  }
  const bool equality = condition == eq || condition == ne;
  if (flags.kind == FlagState::Kind::test ||
      (equality && is_number(flags.right) && flags.right.offset == 0)) {
    if (!equality) return expressions_.unknown(vague);
    const ExprId nonzero = truth(flags.left, flags.at);
    return condition == ne ? nonzero : expressions_.negation(nonzero);
  }
  const ExprId left = as_expression(flags.left), right = as_expression(flags.right);
  if (left == kNoExpr || right == kNoExpr) {
    const ExprId id =
        expressions_.unknown(vague + (condition < 2 ? "" : fmt::format(" ({})", condition / 2)));
    return negative ? expressions_.negation(id) : id;
  }
  return expressions_.compare(kConditionCompare[condition], left, right);
}

ExprId Interpreter::flag_condition(const FlagState& flags, std::uint8_t condition) {
  const ExprId compared = compare_flags(flags, condition);
  if (flags.guard == 1) return compared;
  // Only Z is looked at: ccmp chains of truth values use eq and ne.
  const bool zero = flags.nzcv & 4;
  const ExprId otherwise = condition == eq ? expressions_.constant(zero)
                           : condition == ne
                               ? expressions_.constant(!zero)
                               : expressions_.unknown(fmt::format("comparison at {:#x}", flags.at));
  return expressions_.select(flags.guard, compared, otherwise);
}

AbstractValue Interpreter::select(ExprId condition, const AbstractValue& a, const AbstractValue& b,
                                  std::uint64_t at) {
  if (a == b) return a;
  const auto as_truth = [&](const AbstractValue& v) {
    if (is_expr(v) && expressions_.is_boolean(v.id)) return v.id;
    if (is_number(v) && (v.offset == 0 || v.offset == 1))
      return expressions_.constant(v.offset != 0);
    return kNoExpr;
  };
  const ExprId left = as_truth(a), right = as_truth(b);
  if (left != kNoExpr && right != kNoExpr) {
    const ExprId chosen = expressions_.select(condition, left, right);
    if (expressions_.is_interesting(chosen) || chosen <= 1) {
      AbstractValue out = chosen <= 1 ? number(chosen) : expression(chosen);
      out.stale = a.stale || b.stale;
      return out;
    }
  }
  if (recording_ && is_number(a) && is_number(b) && expressions_.has_answer(condition))
    out_.selects.push_back({at, condition, a.offset, b.offset});
  if ((is_number(a) || is_set(a)) && (is_number(b) || is_set(b))) {
    std::vector<std::int64_t> numbers;
    for (const AbstractValue* v : {&a, &b}) {
      if (is_number(*v))
        numbers.push_back(v->offset);
      else
        numbers.insert(numbers.end(), values_.set(v->id).begin(), values_.set(v->id).end());
    }
    AbstractValue out;
    if (numbers.size() > kMaxSet) return out;
    out.kind = AbstractValue::Kind::set;
    out.id = values_.set(numbers);
    return out;
  }
  return {};
}

void Interpreter::conditional_select(MachineState& state, const Insn& insn) {
  const AbstractValue a = get(state, insn.rn);
  AbstractValue b = get(state, insn.rm);
  if (insn.op == Op::csinc) b = combine(Op::add, b, number(1), insn.wide);
  if (insn.op == Op::csinv)
    b = is_number(b) ? number(truncated(~b.offset, insn.wide)) : AbstractValue{};
  if (insn.op == Op::csneg)
    b = is_number(b) ? number(truncated(-b.offset, insn.wide)) : AbstractValue{};
  const ExprId condition = flag_condition(state.flags, insn.condition);
  set(state, insn.rd, select(condition, a, b, insn.address), insn.wide);
}

void Interpreter::conditional_compare(MachineState& state, const Insn& insn) {
  FlagState flags;
  flags.kind = FlagState::Kind::compare;
  flags.guard = flag_condition(state.flags, insn.condition);
  flags.left = get(state, insn.rn);
  flags.right = insn.op == Op::ccmp_imm ? number(insn.imm) : get(state, insn.rm);
  flags.nzcv = insn.nzcv;
  flags.at = insn.address;
  state.flags = flags;
}

ExprId Interpreter::condition(const MachineState& state, const Insn& branch) {
  switch (branch.op) {
    case Op::b_cond:
      return flag_condition(state.flags, branch.condition);
    case Op::cbnz:
      return truth(get(state, branch.rn), branch.address);
    case Op::cbz:
      return expressions_.negation(truth(get(state, branch.rn), branch.address));
    case Op::tbz:
    case Op::tbnz: {
      const AbstractValue value = get(state, branch.rn);
      ExprId set = kNoExpr;
      if (is_number(value))
        set = expressions_.constant((value.offset >> (branch.imm & 63)) & 1);
      else if (is_expr(value) && expressions_.is_boolean(value.id) && branch.imm == 0)
        set = value.id;
      else
        set = expressions_.unknown(
            fmt::format("bit {} of {}", branch.imm, reason(value, branch.address)));
      return branch.op == Op::tbnz ? set : expressions_.negation(set);
    }
    default:
      return kNoExpr;
  }
}

}  // namespace metaldoctor
