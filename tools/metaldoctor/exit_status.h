#pragma once
#include <array>
#include <string_view>

#include "tables/diagnostic.h"

namespace metaldoctor {

/// Every exit status of every command. With several inputs the worst wins in the order
/// unreadable, refused, findings.
enum class ExitStatus : int {
  done = 0,
  findings = 1,
  usage = 2,
  unreadable = 3,
  refused = 4,
  bug = 70,
};

struct ExitStatusText {
  ExitStatus status;
  std::string_view text;
};

inline constexpr std::array<ExitStatusText, 6> exit_status_texts = {{
    {ExitStatus::done, "nothing found, or done"},
    {ExitStatus::findings, "findings: a mismatch, an over-claim, a failed check"},
    {ExitStatus::usage, "usage: unknown option or name, or nothing to work on"},
    {ExitStatus::unreadable, "an input is unreadable or malformed"},
    {ExitStatus::refused, "refused: above the host, host unknown, a hazard, a conflict"},
    {ExitStatus::bug, "a fault of metaldoctor itself"},
}};

ExitStatus exit_status(Fault fault);
/// The status that several inputs give together.
ExitStatus worse(ExitStatus a, ExitStatus b);

}  // namespace metaldoctor
