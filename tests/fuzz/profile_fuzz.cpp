// A profile that is read writes a document that reads back to the same one.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "shim/profile.h"

using namespace metaldoctor;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Tables tables = std::move(*Tables::embedded());
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto profile = read_profile(tables, text, "profile");
  if (!profile) return 0;
  const std::string written = to_json(*profile).dump();
  const auto again = read_profile(tables, written, "written");
  if (!again || to_json(*again).dump() != written) std::abort();
  return 0;
}
