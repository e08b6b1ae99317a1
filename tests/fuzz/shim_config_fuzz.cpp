// Any bytes as the injected library's configuration: nothing is read out of bounds, and what is
// taken lies within the bounds that the hooks rely on.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "shim/dylib/config.h"

using namespace metaldoctor::shim;

static std::string variable;

static char* lookup(const char* name) {
  return std::string_view(name) == "METALDOCTOR_PROFILE" || variable.find(name) != variable.npos
             ? variable.data()
             : nullptr;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  variable = bytes.c_str();  // an environment variable ends at its first NUL
  for (const std::string& section : {bytes, std::string(kTemplateMark)}) {
    Configuration configuration;
    configure(section.data(), section.size(), lookup, configuration);
    const Overrides& overrides = configuration.overrides;
    if (overrides.count > kMaxChanges || (configuration.malformed && overrides.count > 0)) {
      std::abort();
    }
    for (std::size_t i = 0; i < overrides.count; ++i) {
      if (!find_query(overrides.changes[i].wire)) std::abort();
    }
  }
  std::string list = variable;
  remove_library(list.data(), "libmetaldoctor-shim.dylib");
  if (std::string_view(list.c_str()).size() > variable.size()) std::abort();
  return 0;
}
