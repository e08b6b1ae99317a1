#pragma once
#include <string_view>

#include "scanners/simulator/host_abi.h"

namespace metaldoctor {

/// What a method of the device classes does, by the word in metal-runtime.json; null for a word
/// that the simulator does not know.
void (*device_method_handler(std::string_view does))(Call&);

}  // namespace metaldoctor
