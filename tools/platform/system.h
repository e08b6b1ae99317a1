#pragma once
#include <string>
#include <vector>

namespace metaldoctor {

#if defined(__APPLE__)
inline constexpr bool kOnMacos = true;
#else
inline constexpr bool kOnMacos = false;
#endif

/// The environment of this process, read in one place.
struct SystemEnvironment {
  std::vector<std::string> variables;  ///< "NAME=value"
  std::string home;                    ///< HOME; empty = not set
  std::string search_path;             ///< PATH
  std::string cache_directory;         ///< of this program
  std::string state_directory;         ///< receipts
  unsigned user = 0;
};
SystemEnvironment system_environment();

}  // namespace metaldoctor
