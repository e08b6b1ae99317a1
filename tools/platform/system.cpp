#include "tools/platform/system.h"

#include <unistd.h>

#include <cstdlib>

extern "C" char** environ;

namespace metaldoctor {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// The directory that an XDG variable names, if it is absolute as the specification wants it.
std::string xdg(const char* name, const std::string& fallback) {
  const std::string value = variable(name);
  return value.starts_with('/') ? value : fallback;
}

}  // namespace

SystemEnvironment system_environment() {
  SystemEnvironment out;
  for (char** entry = environ; entry && *entry; ++entry) out.variables.emplace_back(*entry);
  out.home = variable("HOME");
  out.search_path = variable("PATH");
  out.user = ::geteuid();
  if (out.home.empty()) return out;
  if (kOnMacos) {
    out.cache_directory = out.home + "/Library/Caches/metaldoctor";
    out.state_directory = out.home + "/Library/Application Support/metaldoctor";
  } else {
    out.cache_directory = xdg("XDG_CACHE_HOME", out.home + "/.cache") + "/metaldoctor";
    out.state_directory = xdg("XDG_STATE_HOME", out.home + "/.local/state") + "/metaldoctor";
  }
  return out;
}

}  // namespace metaldoctor
