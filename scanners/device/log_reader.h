#pragma once
#include <string_view>
#include <vector>

#include "scanners/device/capture.h"

namespace metaldoctor {

/// Reads the log of a Metal program by the grammars of tables/data/log-grammars.json and gives one
/// capture a device block, in order; blocks that say the same are merged. A line that is cut,
/// glued to another, or has an unexpected value yields an unknown, never a guess. A family class
/// whose line is absent is "no" only when a later line of the same block proves that the program
/// got past it.
/// Error "log-no-device" when no line of any grammar is found.
Result<std::vector<Capture>> read_log(const Tables& tables, std::string_view text,
                                      std::string_view name);

}  // namespace metaldoctor
