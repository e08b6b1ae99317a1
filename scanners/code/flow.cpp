#include "scanners/code/flow.h"

#include <algorithm>

namespace metaldoctor {
namespace {

bool is_conditional(Op op) {
  return op == Op::b_cond || op == Op::cbz || op == Op::cbnz || op == Op::tbz || op == Op::tbnz;
}

class FlowMaker {
 public:
  FlowMaker(const std::vector<Insn>& code, const std::function<bool(const Insn&)>& ends_here)
      : code_(code), ends_here_(ends_here) {}

  Flow make() {
    split();
    for (std::uint32_t b = 0; b < flow_.blocks.size(); ++b) connect(b);
    cut_off_padding();
    connect_indirect();
    for (std::uint32_t b = 0; b < flow_.blocks.size(); ++b)
      for (const std::uint32_t to : flow_.blocks[b].successors)
        flow_.blocks[to].predecessors.push_back(b);
    order();
    dominators();
    number_tree();
    return std::move(flow_);
  }

 private:
  bool ends_block(const Insn& insn) const {
    return insn.op == Op::b || insn.op == Op::br || insn.op == Op::ret || insn.op == Op::trap ||
           is_conditional(insn.op) || ends_here_(insn);
  }
  void split() {
    std::vector<bool> leads(code_.size() + 1, false);
    leads[0] = true;
    for (std::size_t i = 0; i < code_.size(); ++i) {
      if (!ends_block(code_[i])) continue;
      leads[i + 1] = true;
      if (code_[i].op == Op::b || is_conditional(code_[i].op))
        leads[step_at(code_, code_[i].target)] = true;
    }
    block_of_.resize(code_.size());
    for (std::uint32_t i = 0; i < code_.size(); ++i) {
      if (leads[i]) flow_.blocks.push_back({i, i, {}, {}, false, false});
      flow_.blocks.back().last = i + 1;
      block_of_[i] = static_cast<std::uint32_t>(flow_.blocks.size() - 1);
    }
  }

  void connect(std::uint32_t number) {
    Block& block = flow_.blocks[number];
    const Insn& end = code_[block.last - 1];
    const bool falls_through = block.last < code_.size();
    if (end.op == Op::ret) {
      block.returns = true;
    } else if (end.op == Op::trap || (ends_here_(end) && end.op == Op::bl)) {
      // nothing follows
    } else if (end.op == Op::br) {
      indirect_.push_back(number);
    } else if (end.op == Op::b || is_conditional(end.op)) {
      const std::size_t target = step_at(code_, end.target);
      if (target < code_.size())
        block.successors.push_back(block_of_[target]);
      else
        block.returns = true;  // a tail call
      if (end.op == Op::b) return;
      block.conditional = target < code_.size() && falls_through;
      if (falls_through) block.successors.push_back(number + 1);
    } else if (falls_through) {
      block.successors.push_back(number + 1);
    }
  }

  std::vector<bool> reached() const {
    std::vector<bool> out(flow_.blocks.size(), false);
    for (const Block& block : flow_.blocks)
      for (const std::uint32_t to : block.successors) out[to] = true;
    return out;
  }

  /// Nops that align a loop head stand after a jump; nothing falls through them.
  void cut_off_padding() {
    const std::vector<bool> reached = this->reached();
    for (std::uint32_t b = 1; b < flow_.blocks.size(); ++b) {
      Block& block = flow_.blocks[b];
      if (!reached[b] && is_padding(block)) block.successors.clear();
    }
  }
  bool is_padding(const Block& block) const {
    return std::all_of(code_.begin() + block.first, code_.begin() + block.last,
                       [](const Insn& insn) { return insn.op == Op::nop || insn.op == Op::trap; });
  }

  void connect_indirect() {
    if (indirect_.empty()) return;
    const std::vector<bool> reached = this->reached();
    std::vector<std::uint32_t> loose;
    for (std::uint32_t b = 1; b < flow_.blocks.size(); ++b)
      if (!reached[b] && !is_padding(flow_.blocks[b])) loose.push_back(b);
    // Many switches times many cases would be quadratic; one switch takes them all then.
    const bool many = indirect_.size() * loose.size() > 65'536;
    for (const std::uint32_t from : indirect_) {
      flow_.blocks[from].successors = loose;
      if (loose.empty()) flow_.blocks[from].returns = true;  // a tail call
      if (many) break;
    }
  }

  void order() {
    const auto count = static_cast<std::uint32_t>(flow_.blocks.size());
    std::vector<std::uint8_t> state(count, 0);  // 0 new, 1 open, 2 done
    std::vector<std::pair<std::uint32_t, std::uint32_t>> stack;
    std::vector<std::uint32_t> post;
    const auto visit = [&](std::uint32_t root) {
      if (state[root]) return;
      stack.emplace_back(root, 0);
      state[root] = 1;
      while (!stack.empty()) {
        auto& [block, next] = stack.back();
        if (next < flow_.blocks[block].successors.size()) {
          const std::uint32_t to = flow_.blocks[block].successors[next++];
          if (state[to] == 0) {
            state[to] = 1;
            stack.emplace_back(to, 0);
          }
          continue;
        }
        state[block] = 2;
        post.push_back(block);
        stack.pop_back();
      }
    };
    // Unreached blocks (landing pads, switch targets) are roots of their own, after the entry's.
    std::vector<std::uint32_t> whole;
    for (std::uint32_t root = 0; root < count; ++root) {
      post.clear();
      if (!state[root]) roots_.push_back(root);
      visit(root);
      whole.insert(whole.end(), post.rbegin(), post.rend());
    }
    flow_.order = std::move(whole);
    flow_.position.resize(count);
    for (std::uint32_t i = 0; i < count; ++i) flow_.position[flow_.order[i]] = i;
    for (std::uint32_t b = 0; b < count; ++b)
      for (const std::uint32_t to : flow_.blocks[b].successors)
        if (flow_.is_back_edge(b, to)) flow_.has_loop = true;
  }

  /// Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm.
  void dominators() {
    constexpr std::uint32_t kNone = UINT32_MAX;
    auto& dominator = flow_.dominator;
    dominator.assign(flow_.blocks.size(), kNone);
    // Roots of their own hang below the entry, whatever jumps back to them.
    std::vector<bool> fixed(flow_.blocks.size(), false);
    for (const std::uint32_t root : roots_) {
      dominator[root] = 0;
      fixed[root] = true;
    }
    const auto meet = [&](std::uint32_t a, std::uint32_t b) {
      while (a != b) {
        while (flow_.position[a] > flow_.position[b]) a = dominator[a];
        while (flow_.position[b] > flow_.position[a]) b = dominator[b];
      }
      return a;
    };
    for (bool changed = true; changed;) {
      changed = false;
      for (const std::uint32_t block : flow_.order) {
        if (fixed[block]) continue;
        std::uint32_t best = kNone;
        for (const std::uint32_t from : flow_.blocks[block].predecessors)
          if (dominator[from] != kNone) best = best == kNone ? from : meet(best, from);
        if (dominator[block] != best) {
          dominator[block] = best;
          changed = true;
        }
      }
    }
  }

  /// Numbers the dominator tree, so that dominates() is two comparisons.
  void number_tree() {
    const std::size_t count = flow_.blocks.size();
    std::vector<std::vector<std::uint32_t>> children(count);
    for (std::uint32_t b = 1; b < count; ++b) children[flow_.dominator[b]].push_back(b);
    flow_.tree_in.assign(count, 0);
    flow_.tree_out.assign(count, 0);
    std::uint32_t clock = 0;
    std::vector<std::pair<std::uint32_t, std::size_t>> open{{0, 0}};
    while (!open.empty()) {
      auto& [block, next] = open.back();
      if (next == 0) flow_.tree_in[block] = clock++;
      if (next < children[block].size()) {
        const std::uint32_t child = children[block][next++];
        open.emplace_back(child, 0);
      } else {
        flow_.tree_out[block] = clock++;
        open.pop_back();
      }
    }
  }

  const std::vector<Insn>& code_;
  const std::function<bool(const Insn&)>& ends_here_;
  Flow flow_;
  std::vector<std::uint32_t> block_of_;
  std::vector<std::uint32_t> indirect_;
  std::vector<std::uint32_t> roots_;
};

}  // namespace

std::size_t step_at(const std::vector<Insn>& code, std::uint64_t address) {
  if (code.empty() || address < code.front().address) return code.size();
  // Where every instruction is one step of four bytes, this is it.
  const std::uint64_t guess = (address - code.front().address) / 4;
  if (guess < code.size() && code[guess].address == address &&
      (guess == 0 || code[guess - 1].address != address))
    return guess;
  const auto found =
      std::lower_bound(code.begin(), code.end(), address,
                       [](const Insn& step, std::uint64_t at) { return step.address < at; });
  return found != code.end() && found->address == address
             ? static_cast<std::size_t>(found - code.begin())
             : code.size();
}

Flow make_flow(const std::vector<Insn>& code, const std::function<bool(const Insn&)>& ends_here) {
  if (code.empty()) return {};
  return FlowMaker(code, ends_here).make();
}

std::uint32_t Flow::block_at(const std::vector<Insn>& code, std::uint64_t address) const {
  const auto after = std::upper_bound(
      blocks.begin(), blocks.end(), address,
      [&](std::uint64_t at, const Block& block) { return at < code[block.first].address; });
  return static_cast<std::uint32_t>(after - blocks.begin()) - 1;
}

}  // namespace metaldoctor
