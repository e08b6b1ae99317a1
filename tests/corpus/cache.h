#pragma once
#include <cstdlib>
#include <filesystem>

namespace metaldoctor::testing {

/// Where tests/corpus/fetch.py puts what it fetched.
inline std::filesystem::path corpus_cache() {
  if (const char* set = std::getenv("METALDOCTOR_CORPUS")) return set;
  if (const char* set = std::getenv("XDG_CACHE_HOME"))
    return std::filesystem::path(set) / "metaldoctor-corpus";
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home ? home : "/") / ".cache/metaldoctor-corpus";
}

}  // namespace metaldoctor::testing
