#include "tools/metaldoctor/exit_status.h"

#include <algorithm>

namespace metaldoctor {

ExitStatus exit_status(Fault fault) {
  static constexpr std::array<std::pair<Fault, ExitStatus>, 4> map = {{
      {Fault::usage, ExitStatus::usage},
      {Fault::input, ExitStatus::unreadable},
      {Fault::refused, ExitStatus::refused},
      {Fault::bug, ExitStatus::bug},
  }};
  const auto* entry = std::ranges::find(map, fault, &std::pair<Fault, ExitStatus>::first);
  return entry == map.end() ? ExitStatus::bug : entry->second;
}

ExitStatus worse(ExitStatus a, ExitStatus b) {
  static constexpr std::array order = {ExitStatus::bug,        ExitStatus::usage,
                                       ExitStatus::unreadable, ExitStatus::refused,
                                       ExitStatus::findings,   ExitStatus::done};
  return *std::ranges::find_if(order, [&](ExitStatus s) { return s == a || s == b; });
}

}  // namespace metaldoctor
