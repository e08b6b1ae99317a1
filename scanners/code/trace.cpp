#include "scanners/code/trace.h"

#include <algorithm>
#include <optional>

#include "scanners/code/interpreter.h"
#include "scanners/code/join.h"

namespace metaldoctor {
namespace {

constexpr int kMaxRounds = 8;
constexpr std::size_t kSimplificationSteps = 50'000;
constexpr std::size_t kMaxBlocks = 20'000;
constexpr std::size_t kMaxLiveCells = 400'000;  // of all blocks that wait for a successor

/// Runs one function to a fixpoint, then once more to record what happens.
class FunctionRun {
 public:
  FunctionRun(const Program& program, Leaves& leaves, Expressions& expressions, FunctionTrace& out)
      : expressions_(expressions),
        out_(out),
        interpreter_(program, leaves, expressions, out),
        frame_(program.arch().frame),
        result_(program.arch().result),
        is_table_([&program](std::int64_t number) {
          const Section* section =
              number > 0 ? program.image().section_at(static_cast<std::uint64_t>(number)) : nullptr;
          return section && !section->is_code() && !section->bytes.empty();
        }) {}

  void run() {
    out_.flow =
        make_flow(out_.code, [&](const Insn& insn) { return interpreter_.ends_here(insn); });
    out_.conditions.assign(out_.flow.blocks.size(), kNoExpr);
    interpreter_.record(true);
    if (out_.flow.blocks.size() > kMaxBlocks) return each_block_alone();
    inputs_.resize(out_.flow.blocks.size());
    outputs_.resize(out_.flow.blocks.size());
    waiting_.resize(out_.flow.blocks.size());
    settle();
    finish();
  }

 private:
  /// Too large to keep a state for each block: sites are still found, with what their own block
  /// says about them.
  void each_block_alone() {
    out_.exact = false;
    for (std::uint32_t number = 0; number < out_.flow.blocks.size(); ++number) {
      const Block& block = out_.flow.blocks[number];
      MachineState state;
      for (std::uint32_t i = block.first; i < block.last; ++i) {
        if (i + 1 == block.last)
          out_.conditions[number] = interpreter_.condition(state, out_.code[i]);
        interpreter_.step(state, out_.code[i]);
      }
    }
  }

  /// Passes until no block's input changes. Loop headers forget what differs, so this ends soon;
  /// if not, they forget everything.
  void settle() {
    for (int round = 0; round < kMaxRounds; ++round)
      if (!pass() || !out_.flow.has_loop) return;
    out_.exact = false;
    forget_in_loops_ = true;
    pass();
    pass();
  }

  bool pass() {
    bool changed = false;
    out_.clear_events();
    StateJoin joiner(out_.flow, out_.conditions, expressions_, out_.values, is_table_);
    for (std::uint32_t b = 0; b < waiting_.size(); ++b) waiting_[b] = forward_edges(b);
    for (const std::uint32_t block : out_.flow.order) {
      MachineState input = enter(block, joiner);
      if (is_header(block) && (!inputs_[block] || !(*inputs_[block] == input))) {
        changed = true;
        inputs_[block] = input;
      }
      execute(block, std::move(input));
      release_predecessors(block);
    }
    return changed;
  }

  bool is_header(std::uint32_t block) const {
    const auto& from = out_.flow.blocks[block].predecessors;
    return std::any_of(from.begin(), from.end(),
                       [&](std::uint32_t pred) { return out_.flow.is_back_edge(pred, block); }) ||
           (block == 0 && !from.empty());
  }

  /// How many successors still need a block's output; one more if it is needed to the end.
  std::size_t forward_edges(std::uint32_t number) const {
    const Block& block = out_.flow.blocks[number];
    std::size_t count = block.returns ? 1 : 0;
    for (const std::uint32_t to : block.successors)
      count += out_.flow.is_back_edge(number, to) ? block.successors.size() : 1;
    return count;
  }

  /// Frees the outputs that no later block needs: functions of thousands of blocks would otherwise
  /// keep a state for each.
  void release_predecessors(std::uint32_t block) {
    for (const std::uint32_t from : out_.flow.blocks[block].predecessors)
      if (!out_.flow.is_back_edge(from, block) && outputs_[from] && --waiting_[from] == 0) {
        live_cells_ -= outputs_[from]->memory.cells().size();
        outputs_[from].reset();
      }
  }

  MachineState enter(std::uint32_t block, StateJoin& joiner) {
    std::vector<Incoming> incoming;
    bool loops = false;
    for (const std::uint32_t from : out_.flow.blocks[block].predecessors) {
      loops |= out_.flow.is_back_edge(from, block);
      if (outputs_[from]) incoming.push_back({from, &*outputs_[from]});
    }
    if (block == 0) {
      if (out_.begin == out_.function) entry_ = interpreter_.entry_state();
      incoming.push_back({0, &entry_});
      if (incoming.size() == 1) return entry_;
      loops = true;
    }
    // Not reached by any branch we know: a landing pad. The frame is the same, nothing else is.
    if (incoming.empty()) return frame_only_;
    MachineState state = incoming.size() == 1
                             ? *incoming.front().state
                             : joiner.join(block, out_.flow.dominator[block], incoming, loops);
    if (loops) widen(block, state);
    return state;
  }

  /// What changed at a loop header since the last pass is unknown from now on.
  void widen(std::uint32_t block, MachineState& state) {
    if (forget_in_loops_) {
      const AbstractValue sp = state.regs[kSp], fp = state.regs[frame_];
      state = {};
      state.regs[kSp] = sp;
      if (is_based(fp) && fp.base == 1) state.regs[frame_] = fp;
      return;
    }
    if (!inputs_[block]) return;
    const MachineState& before = *inputs_[block];
    for (std::size_t reg = 0; reg < state.regs.size(); ++reg)
      if (!(state.regs[reg] == before.regs[reg]) &&
          !begins_to_walk(before.regs[reg], state.regs[reg]))
        state.regs[reg] = {};
    state.forget([&](const Cell& cell) {
      if (out_.values.base(cell.base).kind == Base::Kind::walk) return true;
      const Cell* old = before.cell(cell.base, cell.offset);
      return !old || !(*old == cell);
    });
  }

  bool begins_to_walk(const AbstractValue& before, const AbstractValue& now) const {
    return before.kind == AbstractValue::Kind::linear && is_based(now) &&
           out_.values.base(now.base).kind == Base::Kind::walk;
  }

  void execute(std::uint32_t number, MachineState state) {
    const Block& block = out_.flow.blocks[number];
    for (std::uint32_t i = block.first; i < block.last; ++i) {
      const Insn& insn = out_.code[i];
      if (i + 1 == block.last) out_.conditions[number] = interpreter_.condition(state, insn);
      interpreter_.step(state, insn);
    }
    const AbstractValue &sp = state.regs[kSp], &fp = state.regs[frame_];
    if (number == 0 || (is_based(fp) && fp.base == 1)) {
      frame_only_.regs[kSp] = sp;
      if (is_based(fp) && fp.base == 1) frame_only_.regs[frame_] = fp;
    }
    if (live_cells_ > kMaxLiveCells) {
      state.memory.clear();
      out_.exact = false;
    }
    if (outputs_[number]) live_cells_ -= outputs_[number]->memory.cells().size();
    live_cells_ += state.memory.cells().size();
    outputs_[number] = std::move(state);
  }

  void finish() {
    std::vector<Incoming> exits;
    for (std::uint32_t b = 0; b < out_.flow.blocks.size(); ++b)
      if (out_.flow.blocks[b].returns && outputs_[b]) exits.push_back({b, &*outputs_[b]});
    if (exits.empty()) return;
    if (exits.size() == 1)
      out_.exit = *exits.front().state;
    else
      out_.exit = exit_state(exits);
    const AbstractValue& result = out_.exit.regs[result_];
    if (result.kind == AbstractValue::Kind::expr && expressions_.is_interesting(result.id))
      out_.returned = result.id;
  }

  /// As if all returns jumped to one last block.
  MachineState exit_state(const std::vector<Incoming>& exits) {
    Flow flow = out_.flow;
    const auto last = static_cast<std::uint32_t>(flow.blocks.size());
    Block block;
    std::uint32_t dominator = exits.front().from;
    for (const Incoming& exit : exits) {
      block.predecessors.push_back(exit.from);
      while (!flow.dominates(dominator, exit.from)) dominator = flow.dominator[dominator];
    }
    flow.blocks.push_back(block);
    flow.order.push_back(last);
    flow.position.push_back(last);
    flow.dominator.push_back(dominator);
    std::vector<ExprId> conditions = out_.conditions;
    conditions.push_back(kNoExpr);
    return StateJoin(flow, conditions, expressions_, out_.values, is_table_)
        .join(last, dominator, exits, false);
  }

  Expressions& expressions_;
  FunctionTrace& out_;
  Interpreter interpreter_;
  std::uint8_t frame_, result_;
  const std::function<bool(std::int64_t)> is_table_;
  MachineState entry_;
  MachineState frame_only_;                           ///< what holds in all of the body
  std::vector<std::optional<MachineState>> inputs_;   ///< of loop headers
  std::vector<std::optional<MachineState>> outputs_;  ///< of blocks that are still needed
  std::vector<std::size_t> waiting_;
  std::size_t live_cells_ = 0;
  bool forget_in_loops_ = false;
};

}  // namespace

void FunctionTrace::clear_events() {
  calls.clear();
  stores.clear();
  loads.clear();
  selects.clear();
  mentions.clear();
  table_ends.clear();
  kept_targets.clear();
}

Tracer::Tracer(const Program& program, Decoder& decoder, Expressions& expressions)
    : program_(program), decoder_(decoder), expressions_(expressions), leaves_(program, decoder) {}

/// Branches of object files go where their relocation says; undefined symbols are outside.
void Tracer::apply_relocations(std::vector<Insn>& code) const {
  for (Insn& insn : code) {
    if (insn.op != Op::b && insn.op != Op::bl) continue;
    if (const Relocation* relocation = program_.relocation(insn))
      insn.target = relocation->undefined ? UINT64_MAX : relocation->target;
  }
}

FunctionTrace Tracer::trace(std::uint64_t begin, std::uint64_t end, std::uint64_t function,
                            const KnownLoads* known) {
  FunctionTrace out;
  out.known = known;
  out.result = program_.arch().result;
  out.function = function;
  out.begin = begin;
  out.end = std::min(end, begin + kMaxFunctionBytes);
  const auto bytes = program_.image().bytes_from(begin);
  if (!bytes) return out;
  out.code =
      decoder_.decode(bytes->first(std::min<std::uint64_t>(bytes->size(), out.end - begin)), begin);
  if (out.code.empty()) return out;
  if (program_.image().is_object()) apply_relocations(out.code);
  out.exact = out.end == end;
  expressions_.allow_steps(kSimplificationSteps);
  FunctionRun(program_, leaves_, expressions_, out).run();
  const auto by_address = [](const auto& a, const auto& b) { return a.address < b.address; };
  std::sort(out.calls.begin(), out.calls.end(), by_address);
  std::sort(out.stores.begin(), out.stores.end(), by_address);
  std::sort(out.mentions.begin(), out.mentions.end(), by_address);
  return out;
}

}  // namespace metaldoctor
