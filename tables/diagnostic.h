#pragma once
#include <string>
#include <tl/expected.hpp>

namespace metaldoctor {

/// What kind of failure a Diagnostic is. The tools map each kind to one exit status.
enum class Fault {
  usage,    ///< the caller asked for something that does not exist or does not fit together
  input,    ///< a file is unreadable, malformed, or larger than the reader's bounds
  refused,  ///< it could be done, but is not safe: above the host, host unknown, a hazard
  bug,      ///< an invariant of ours does not hold
};

/// The one error type above the scanners that use LLVM. Text only: no renderer adds to it.
struct Diagnostic {
  Fault fault = Fault::input;
  std::string code;   ///< stable, kebab-case, explained by `metaldoctor explain CODE`
  std::string where;  ///< "file", "file:line", "file: offset 0x10", "file: /answers/3/query"
  std::string what;   ///< one sentence, what was expected and what was found
  std::string hint;   ///< what the user can do; may be empty

  friend bool operator==(const Diagnostic&, const Diagnostic&) = default;
};

template <typename T>
using Result = tl::expected<T, Diagnostic>;

/// The unexpected half of a Result, built in place.
inline tl::unexpected<Diagnostic> fail(Fault fault, std::string code, std::string where,
                                       std::string what, std::string hint = {}) {
  return tl::unexpected<Diagnostic>(
      Diagnostic{fault, std::move(code), std::move(where), std::move(what), std::move(hint)});
}

}  // namespace metaldoctor
