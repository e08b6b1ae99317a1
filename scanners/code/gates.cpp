#include "scanners/code/gates.h"

#include <fmt/format.h>

#include <algorithm>

namespace metaldoctor {
namespace {

constexpr std::size_t kMaxGates = 1024;  // a function; damaged code can have tens of thousands
constexpr std::size_t kMaxList = 64;
constexpr std::size_t kMaxText = 160;

class GateFinder {
 public:
  GateFinder(const Program& program, const FunctionTrace& trace, Expressions& expressions,
             const std::vector<LadderRun>& ladders,
             const std::function<std::string(std::uint64_t)>& name)
      : program_(program), trace_(trace), expressions_(expressions), name_(name) {
    for (const LadderRun& run : ladders)
      for (const std::size_t call : run.calls)
        ladder_blocks_.insert(trace.flow.block_at(trace.code, trace.calls[call].address));
  }

  FoundGates find() {
    for (std::uint32_t b = 0; b < trace_.flow.blocks.size(); ++b) branch(b);
    for (const SelectEvent& event : trace_.selects) select(event);
    stored();
    if (trace_.returned != kNoExpr && expressions_.has_answer(trace_.returned)) returned();
    return std::move(out_);
  }

 private:
  Gate make(ExprId expr, Gate::Where::Kind kind, std::uint64_t address, char tag) const {
    Gate gate;
    gate.expr = expressions_.print(expr);
    gate.id = fmt::format("{}-{:x}", tag, address);
    gate.where.kind = kind;
    gate.where.address = address;
    gate.function_address = trace_.function;
    if (expressions_.has_unknown(expr) || !trace_.exact) gate.certainty = Certainty::likely;
    return gate;
  }

  void keep(Gate gate, ExprId expr) {
    if (out_.gates.size() < kMaxGates)
      out_.gates.push_back({std::move(gate), expr});
    else
      out_.cut = true;
  }

  void branch(std::uint32_t number) {
    const Block& block = trace_.flow.blocks[number];
    const ExprId condition = trace_.conditions[number];
    if (out_.cut || !block.conditional || condition == kNoExpr ||
        !expressions_.has_answer(condition) || ladder_blocks_.count(number))
      return;
    // Written the shorter way round; the sides swap.
    const ExprId opposite = expressions_.negation(condition);
    const bool negated = expressions_.print(opposite).size() < expressions_.print(condition).size();
    const ExprId expr = negated ? opposite : condition;
    Gate gate = make(expr, Gate::Where::Kind::branch, trace_.code[block.last - 1].address, 'B');
    gate.if_true = side(number, block.successors[negated ? 1 : 0]);
    gate.if_false = side(number, block.successors[negated ? 0 : 1]);
    keep(std::move(gate), expr);
  }

  void select(const SelectEvent& event) {
    Gate gate = make(event.condition, Gate::Where::Kind::select, event.address, 'S');
    gate.if_true.strings = {chosen(event.if_true)};
    gate.if_false.strings = {chosen(event.if_false)};
    keep(std::move(gate), event.condition);
  }

  /// A selected number, or the text it points to.
  std::string chosen(std::int64_t number) const {
    const auto vm = static_cast<std::uint64_t>(number);
    const Section* section = program_.image().section_at(vm);
    if (section && section->name == "__cstring")
      if (const auto text = program_.image().string_at(vm)) return shortened(*text);
    return fmt::format("{:#x}", number);
  }

  void returned() {
    Gate gate = make(trace_.returned, Gate::Where::Kind::returned, trace_.begin, 'R');
    gate.certainty = Certainty::likely;  // a void function may leave the answer in x0 as well
    keep(std::move(gate), trace_.returned);
  }

  /// Fields and globals: what they hold when the function returns.
  void stored() {
    std::set<std::pair<std::uint32_t, std::int64_t>> done;
    for (const StoreEvent& event : trace_.stores) {
      if (event.value.kind != AbstractValue::Kind::expr) continue;
      if (!done.emplace(event.base, event.offset).second) continue;
      if (out_.cut) return;
      std::vector<std::uint64_t> addresses;
      bool answers = false;
      const StoreEvent* last = &event;
      for (const StoreEvent& other : trace_.stores)
        if (other.base == event.base && other.offset == event.offset &&
            other.value.kind == AbstractValue::Kind::expr) {
          addresses.push_back(other.address);
          last = &other;
          answers |= expressions_.has_answer(other.value.id);
        }
      const Cell* cell = trace_.exit.cell(event.base, event.offset);
      const bool known = cell && cell->value.kind == AbstractValue::Kind::expr;
      const ExprId expr = known ? cell->value.id : last->value.id;
      if (!answers || !expressions_.has_answer(expr)) continue;
      Gate gate = make(expr, event.base ? Gate::Where::Kind::field : Gate::Where::Kind::global,
                       last->address, 'F');
      gate.id = fmt::format("F-{:x}", event.address);
      if (event.base == 0)
        gate.where.address = static_cast<std::uint64_t>(event.offset);
      else
        gate.where.base = trace_.values.describe(event.base);
      gate.where.offset = event.base ? event.offset : 0;
      gate.stores = std::move(addresses);
      gate.where.size = event.size;
      gate.where.object = is_object(event);
      gate.changed_by_calls = known && cell->value.stale;
      if (!known || cell->value.stale) gate.certainty = Certainty::likely;
      keep(std::move(gate), expr);
    }
  }

  /// A field of something that lives on: not of an out-parameter, whose layout no reader shares.
  bool is_object(const StoreEvent& event) const {
    constexpr std::int64_t kFirstField = 16;
    const Base& base = trace_.values.base(event.base);
    return event.base != 0 && event.offset >= kFirstField &&
           (base.kind != Base::Kind::parameter || base.at == 0);
  }

  /// The code that runs only if the edge from `from` to `to` was taken.
  GateSide side(std::uint32_t from, std::uint32_t to) const {
    GateSide out;
    const auto& preds = trace_.flow.blocks[to].predecessors;
    const bool only = std::all_of(preds.begin(), preds.end(), [&](std::uint32_t pred) {
      return pred == from || trace_.flow.dominates(to, pred);
    });
    if (!only) return out;
    // Blocks are in address order; what `to` dominates is often one run of them.
    for (std::uint32_t b = 0; b < trace_.flow.blocks.size(); ++b) {
      if (!trace_.flow.dominates(to, b)) continue;
      const Block& block = trace_.flow.blocks[b];
      const std::uint64_t begin = trace_.code[block.first].address;
      const std::uint64_t end =
          trace_.code[block.last - 1].address + trace_.code[block.last - 1].length;
      if (!out.ranges.empty() && out.ranges.back().second == begin)
        out.ranges.back().second = end;
      else
        out.ranges.emplace_back(begin, end);
    }
    for (const auto& [begin, end] : out.ranges) collect(begin, end, out);
    return out;
  }

  void collect(std::uint64_t begin, std::uint64_t end, GateSide& out) const {
    auto at = std::lower_bound(trace_.mentions.begin(), trace_.mentions.end(), begin,
                               [](const Mention& m, std::uint64_t a) { return m.address < a; });
    for (; at != trace_.mentions.end() && at->address < end; ++at) {
      if (at->what) {
        const bool selector = at->what->sends || !at->what->imported;
        add(selector ? out.selectors : out.calls, std::string(at->what->name));
      } else if (at->target) {
        mention(at->target, out);
      }
    }
  }

  void mention(std::uint64_t target, GateSide& out) const {
    const Section* section = program_.image().section_at(target);
    if (!section) return;
    if (section->is_code()) {
      add(out.calls, name_(target));
    } else if (section->name == "__cfstring") {
      if (const auto text = cfstring_at(program_.image(), program_.fixups(), target))
        add(out.strings, shortened(*text));
    } else if (section->name == "__cstring") {
      if (const auto text = program_.image().string_at(target)) add(out.strings, shortened(*text));
    }
  }

  /// A list that was cut ends in "...".
  static void add(std::vector<std::string>& list, std::string text) {
    if (list.size() > kMaxList || std::find(list.begin(), list.end(), text) != list.end()) return;
    list.push_back(list.size() < kMaxList ? std::move(text) : "...");
  }
  static std::string shortened(std::string_view text) {
    return text.size() <= kMaxText ? std::string(text)
                                   : std::string(text.substr(0, kMaxText)) + "...";
  }

  const Program& program_;
  const FunctionTrace& trace_;
  Expressions& expressions_;
  const std::function<std::string(std::uint64_t)>& name_;
  std::set<std::uint32_t> ladder_blocks_;
  FoundGates out_;
};

}  // namespace

FoundGates find_gates(const Program& program, const FunctionTrace& trace, Expressions& expressions,
                      const std::vector<LadderRun>& ladders,
                      const std::function<std::string(std::uint64_t)>& name) {
  return GateFinder(program, trace, expressions, ladders, name).find();
}

}  // namespace metaldoctor
