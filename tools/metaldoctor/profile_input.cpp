#include "tools/metaldoctor/profile_input.h"

#include "tools/metaldoctor/files.h"

namespace metaldoctor {

Result<Profile> read_profile_file(const Tables& tables, const std::string& path) {
  const auto text = read_file(path);
  if (!text) return tl::unexpected(text.error());
  return read_profile(tables, *text, path == "-" ? "standard input" : path);
}

}  // namespace metaldoctor
