#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "scanners/code/decoder.h"
#include "scanners/code/flow.h"
#include "scanners/code/leaves.h"
#include "scanners/code/program.h"
#include "scanners/code/value.h"

namespace metaldoctor {

constexpr ExprId kNoExpr = UINT32_MAX;

/// A message or call that the vocabulary knows, and what was in the argument registers.
struct CallEvent {
  std::uint64_t address = 0;
  const Target* target = nullptr;
  Route route = Route::stub;
  bool tail = false;
  bool receiver_is_device = false;  ///< proven, not assumed from the selector
  /// Receiver, selector and what follows; a C function's arguments.
  std::array<AbstractValue, 6> arguments;
  ExprId expr = kNoExpr;  ///< what the result is
  /// A tested answer's query, and what it is compared with; or the name that is asked about.
  std::string about;
  std::string_view text;
  /// The argument, if it is the elements of a table that this function's caller hands over.
  std::optional<Summary::Argument> table;
  std::uint64_t callee = 0;  ///< the function of the image that asks
};

/// A value computed from answers, or one of several numbers, was stored in a field or global.
struct StoreEvent {
  std::uint64_t address = 0;
  std::uint32_t base = 0;
  std::int64_t offset = 0;
  std::uint8_t size = 0;
  AbstractValue value;
};

/// Memory was read that this function did not write: a field of an object, or a global.
struct LoadEvent {
  std::uint64_t address = 0;
  std::uint32_t base = 0;
  std::int64_t offset = 0;
  std::uint8_t size = 0;
};

/// An answer selects one of two numbers (csel).
struct SelectEvent {
  std::uint64_t address = 0;
  ExprId condition = kNoExpr;
  std::int64_t if_true = 0, if_false = 0;
};

/// A loop's test of the pointer that it moves against where the table ends.
struct TableEnd {
  std::uint32_t base = 0;   ///< of kind walk
  std::int64_t offset = 0;  ///< of the pointer when it is compared
  std::int64_t end = 0;
};

/// Any call or reference, for saying what lies on the sides of a gate.
struct Mention {
  std::uint64_t address = 0;
  std::uint64_t target = 0;      ///< called function or referenced text; 0 if `what` is set
  const Target* what = nullptr;  ///< stub or import
};

/// What loads of fields and globals give, by the address of the load: flags that other functions
/// filled with answers.
using KnownLoads = std::map<std::uint64_t, ExprId>;

/// Everything that was found out about one function.
struct FunctionTrace {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t function = 0;  ///< start of the function; before `begin` for a later part
  std::vector<Insn> code;
  Flow flow;
  ValueTable values;
  std::vector<ExprId> conditions;  ///< per block: of its branch being taken, or kNoExpr
  std::vector<CallEvent> calls;    ///< in address order
  std::vector<StoreEvent> stores;
  std::vector<LoadEvent> loads;
  std::vector<SelectEvent> selects;
  std::vector<Mention> mentions;
  std::vector<TableEnd> table_ends;
  MachineState exit;          ///< joined over all returns
  ExprId returned = kNoExpr;  ///< x0 at every return, if computed from answers
  /// Globals that were given a registered selector or a function that was looked up.
  std::vector<std::pair<std::uint64_t, const Target*>> kept_targets;
  std::uint8_t result = 0;  ///< the register of results
  void clear_events();
  const KnownLoads* known = nullptr;
  bool exact = true;  ///< false: loops were too deep, registers were forgotten there
};

/// Abstract interpretation of one function: registers, stack slots, globals and fields, joined at
/// control-flow merges under the conditions that lead there. One instance serves one image.
class Tracer {
 public:
  Tracer(const Program& program, Decoder& decoder, Expressions& expressions);

  /// At most kMaxFunctionBytes from `begin`; `function` is where the function starts.
  FunctionTrace trace(std::uint64_t begin, std::uint64_t end, std::uint64_t function,
                      const KnownLoads* known = nullptr);

 private:
  void apply_relocations(std::vector<Insn>& code) const;

  const Program& program_;
  Decoder& decoder_;
  Expressions& expressions_;
  Leaves leaves_;
};

/// What is traced at once. A longer function is traced in parts, each as if it were a function, so
/// that damaged function starts cost no memory; its sites are all found.
constexpr std::uint64_t kMaxFunctionBytes = std::uint64_t{1} << 19;

}  // namespace metaldoctor
