#include "tools/platform/executable_path.h"

#if defined(__APPLE__)
#include <mach-o/dyld.h>

#include <array>
#include <cstdint>
#endif

namespace metaldoctor {

std::filesystem::path executable_directory() {
  std::error_code error;
#if defined(__APPLE__)
  std::array<char, 4096> buffer{};
  auto size = static_cast<std::uint32_t>(buffer.size());
  if (_NSGetExecutablePath(buffer.data(), &size) != 0) return {};
  const auto path = std::filesystem::canonical(buffer.data(), error);
#else
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
#endif
  return error ? std::filesystem::path{} : path.parent_path();
}

}  // namespace metaldoctor
