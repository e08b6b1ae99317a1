#pragma once
#include <filesystem>

namespace metaldoctor {

/// The directory of the running program, links resolved; empty if the system does not tell. The
/// project's other programs (metaldoctor-sim, metal-probe) are looked for there.
std::filesystem::path executable_directory();

}  // namespace metaldoctor
