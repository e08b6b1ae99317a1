#pragma once
#include <string_view>

#include "tables/tables.h"

namespace metaldoctor {

/// The release range of `app` that `release` names: a range's id or alias, or a release as
/// `program` numbers it ("b5000", "1.8.2", "v0.20"). `program` is the name that the user typed:
/// each name has numbers of its own, and under the app's own id a number must fit one range only. A
/// release that no range is known for fails and names its neighbours.
Result<const AppRange*> app_range(const App& app, std::string_view program,
                                  std::string_view release);

/// Whether `text` is a release number that app_range can order.
bool is_release_number(std::string_view text);

/// Whether release `a` is before `b`. Both are release numbers of one kind.
bool release_before(std::string_view a, std::string_view b);

}  // namespace metaldoctor
