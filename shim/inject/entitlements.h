#pragma once
// What a signature entitles a program to. Since macOS 12 the kernel reads the DER form; older ones
// and most tools read the XML. Both are read here and compared.
#include <map>
#include <string>

#include "scanners/macho/code_signature.h"

namespace metaldoctor {

struct Entitlements {
  /// `differ`: the two forms say different things. `damaged`: one cannot be read; the reason says
  /// which and why.
  enum class State { none, read, differ, damaged } state = State::none;
  std::string reason;
  /// As Plist::values() writes them, from the DER form where there is one.
  std::map<std::string, std::string> values;

  bool has(const std::string& key) const {
    const auto found = values.find(key);
    return found != values.end() && found->second == "true";
  }
  bool has_any_below(const std::string& prefix) const {
    const auto found = values.lower_bound(prefix);
    return found != values.end() && found->first.starts_with(prefix);
  }
};

Entitlements read_entitlements(const CodeSignature& signature, const std::string& where);

/// The DER form alone: [APPLICATION 16] { INTEGER 1, [16] { SEQUENCE { UTF8String, value } ... } },
/// values BOOLEAN, INTEGER, UTF8String, SEQUENCE of values, or another [16].
Result<std::map<std::string, std::string>> read_der_entitlements(Bytes der,
                                                                 const std::string& where);

}  // namespace metaldoctor
