#pragma once
#include <optional>

#include "scanners/code/leaves.h"
#include "scanners/code/trace.h"

namespace metaldoctor {

/// Executes instructions on a MachineState. Internal to scanners/code.
class Interpreter {
 public:
  Interpreter(const Program& program, Leaves& leaves, Expressions& expressions, FunctionTrace& out)
      : program_(program),
        arch_(program.arch()),
        expressions_(expressions),
        out_(out),
        values_(out.values),
        leaves_(leaves) {}

  /// Events are kept only while recording: states are still changing before that.
  void record(bool on) { recording_ = on; }
  MachineState entry_state();
  void step(MachineState& state, const Insn& insn);
  /// Of the branch at the end of a block being taken; kNoExpr for other instructions.
  ExprId condition(const MachineState& state, const Insn& branch);
  /// Whether a call never returns.
  bool ends_here(const Insn& insn) const;

 private:
  using Handler = void (Interpreter::*)(MachineState&, const Insn&);
  struct Row {
    Op op;
    Handler handler;
  };
  static const Row kRows[];
  static const std::array<Handler, 64>& handlers();

  // One handler an Op, or a group of them (interpreter.cpp and memory.cpp).
  void other(MachineState& state, const Insn& insn);
  void nothing(MachineState&, const Insn&) {}
  void form_address(MachineState& state, const Insn& insn);
  void move_wide(MachineState& state, const Insn& insn);
  void add_immediate(MachineState& state, const Insn& insn);
  void add_register(MachineState& state, const Insn& insn);
  void logical(MachineState& state, const Insn& insn);
  void bitfield(MachineState& state, const Insn& insn);
  void conditional_select(MachineState& state, const Insn& insn);
  void conditional_compare(MachineState& state, const Insn& insn);
  void load(MachineState& state, const Insn& insn);
  void load_literal(MachineState& state, const Insn& insn);
  void store(MachineState& state, const Insn& insn);
  void branch(MachineState& state, const Insn& insn);
  void call(MachineState& state, const Insn& insn);

  // Values.
  AbstractValue get(const MachineState& state, std::uint8_t reg) const;
  void set(MachineState& state, std::uint8_t reg, AbstractValue value, bool wide);
  AbstractValue combine(Op op, const AbstractValue& a, const AbstractValue& b, bool wide);
  AbstractValue combine_numbers(Op op, const AbstractValue& a, const AbstractValue& b, bool wide);
  AbstractValue spread_over(const AbstractValue& address, const AbstractValue& numbers);
  void note_table_end(const AbstractValue& a, const AbstractValue& b);
  AbstractValue shifted(const AbstractValue& value, std::uint8_t shift);
  ExprId truth(const AbstractValue& value, std::uint64_t at);
  ExprId as_expression(const AbstractValue& value) const;
  ExprId compare_flags(const FlagState& flags, std::uint8_t condition);
  ExprId flag_condition(const FlagState& flags, std::uint8_t condition);
  std::string reason(const AbstractValue& value, std::uint64_t at) const;
  AbstractValue select(ExprId condition, const AbstractValue& a, const AbstractValue& b,
                       std::uint64_t at);

  // Memory.
  struct Place {
    bool known = false;
    std::uint32_t base = 0;
    std::int64_t offset = 0;
    bool several = false;  ///< `offset` indexes a set of offsets
    bool element = false;  ///< somewhere from `offset` on: the index is a loop's
  };
  AbstractValue read_several(const MachineState& state, const Place& at, const Insn& insn);
  void write_several(MachineState& state, const Place& at, const Insn& insn);
  AbstractValue united(const AbstractValue& a, const AbstractValue& b);
  Place place(MachineState& state, const Insn& insn);
  AbstractValue read(MachineState& state, const Place& at, const Insn& insn, unsigned which);
  AbstractValue read_image(std::uint64_t vm, const Insn& insn) const;
  void write(MachineState& state, const Place& at, const Insn& insn, std::uint8_t reg);

  // Calls.
  struct Callee {
    const Target* target = nullptr;
    std::uint64_t address = 0;  ///< of a function of the image
  };
  Callee callee(const MachineState& state, const Insn& insn) const;
  void message(MachineState& state, const Insn& insn, const Target& selector, Route route,
               bool tail, unsigned skipped = 0);
  AbstractValue answer(MachineState& state, const CallEvent& event);
  void named_call(MachineState& state, CallEvent& event, std::optional<std::string_view> first);
  AbstractValue text_test(MachineState& state, CallEvent& event, const AbstractValue& other);
  std::string_view queried_selector(const AbstractValue& value) const;
  void function_call(MachineState& state, const Insn& insn, const Target& target, bool tail);
  void local_call(MachineState& state, const Insn& insn, std::uint64_t address, bool tail);
  bool execute_leaf(MachineState& state, const Insn& call, std::uint64_t address);
  bool chosen_by_caller(const MachineState& state, const Insn& jump) const;
  void summarised_call(MachineState& state, const Insn& insn, std::uint64_t address,
                       const Summary& summary, bool tail);
  AbstractValue table_argument(const MachineState& state, const Summary::Argument& from,
                               const AbstractValue& table, CallEvent& event) const;
  void clobber(MachineState& state, const Insn& insn, bool local_code);
  void note(CallEvent event);
  std::optional<std::string_view> text_of(const AbstractValue& value) const;
  bool is_device(const AbstractValue& value) const;

  AbstractValue argument(const MachineState& state, unsigned index) const {
    return state.regs[arch_.arguments[index]];
  }
  CallEvent event_at(const MachineState& state, const Insn& insn, const Target& target, bool tail,
                     unsigned skipped) const;

  const Program& program_;
  const Arch& arch_;
  Expressions& expressions_;
  FunctionTrace& out_;
  ValueTable& values_;
  bool recording_ = false;
  Leaves& leaves_;
  int depth_ = 0;  ///< of leaves in leaves
  const Insn* outer_call_ = nullptr;
  std::vector<const Target*> offered_;  ///< what the outer caller's registers held
};

}  // namespace metaldoctor
