#include "scanners/macho/bytes.h"

#include <fmt/format.h>

namespace metaldoctor {

tl::unexpected<Diagnostic> malformed(std::string_view code, const std::string& where,
                                     std::uint64_t offset, std::string what) {
  return fail(Fault::input, std::string(code), fmt::format("{}: offset {:#x}", where, offset),
              std::move(what), "the file is damaged or was cut short; fetch it again");
}

}  // namespace metaldoctor
