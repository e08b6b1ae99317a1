#pragma once
#include <optional>
#include <string_view>

namespace metaldoctor {

/// How a claim is known. Ordered from strongest to weakest; no renderer may drop it.
enum class Evidence {
  measured,    ///< a named run on real hardware
  executed,    ///< the simulator ran the code
  read,        ///< source text or disassembly
  documented,  ///< Apple's tables, headers or documentation
  inferred,    ///< follows from other claims and an assumption that is stated beside it
  unknown,
};

std::string_view to_string(Evidence evidence);
std::optional<Evidence> parse_evidence(std::string_view text);
/// The weaker of the two: a conclusion is no better known than its weakest premise.
Evidence weaker(Evidence a, Evidence b);

}  // namespace metaldoctor
