#pragma once
// Profiles that the injected library has to refuse, made from one that it takes.
#include <string>
#include <string_view>
#include <vector>

#include "scanners/macho/bytes.h"

namespace metaldoctor {

/// Each is malformed by the library's own parser: cut, from another version, out of order, too many
/// changes, numbers that do not fit.
std::vector<std::string> malformed_profiles(std::string_view text);

/// A thin library with other bytes in its reserved section; unchanged without one. Not signed
/// again.
std::vector<std::uint8_t> with_section_text(Bytes thin, std::string_view text);

}  // namespace metaldoctor
