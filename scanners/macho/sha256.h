#pragma once
#include <array>
#include <string>

#include "scanners/macho/bytes.h"

namespace metaldoctor {

using Sha256 = std::array<std::uint8_t, 32>;

Sha256 sha256(Bytes bytes);
std::string hex(Bytes bytes);  ///< lower case

}  // namespace metaldoctor
