#pragma once
#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

namespace metaldoctor {

struct Target;
struct FunctionTrace;

/// What a function of the image does for its callers, as far as queries are concerned: private
/// wrappers (Rust makes one a selector), thunks that bind an argument or fetch a selector (the
/// machine outliner makes them), and functions that register selectors.
struct Summary {
  /// A number, plus a parameter of the function if there is one; or the elements of the table that
  /// begins there.
  struct Argument {
    std::int64_t number = 0;
    std::optional<unsigned> parameter = {};
    bool table = false;
    std::optional<unsigned> count_parameter = {};  ///< of a table
    std::int64_t count = 0;                        ///< of a table, where a thunk bound it
    friend bool operator==(const Argument&, const Argument&) = default;
  };
  struct Ask {
    const Target* target = nullptr;
    std::vector<Argument> arguments;
    std::optional<unsigned> receiver;  ///< the parameter it is sent to
    bool receiver_is_device = false;
    friend bool operator==(const Ask&, const Ask&) = default;
  };
  std::vector<Ask> asks;
  bool returns_answer = false;        ///< of the only one
  bool thunk = false;                 ///< asks nothing of its own accord: only jumps on
  std::optional<unsigned> registers;  ///< gives the selector of this parameter's text
  const Target* gives = nullptr;      ///< gives this selector
  bool empty() const { return asks.empty() && !registers && !gives; }
  friend bool operator==(const Summary&, const Summary&) = default;
};

/// Empty for a function that does nothing its callers would have to know.
Summary summarise(const FunctionTrace& trace);

}  // namespace metaldoctor
