#include "shim/inject/file_system.h"

namespace metaldoctor {

std::string parent_directory(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string file_name_of(const std::string& path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 = 0
}

bool is_plain_absolute(std::string_view path) {
  if (path.size() < 2 || path.front() != '/' || path.find('\0') != std::string_view::npos) {
    return false;
  }
  for (std::size_t begin = 1; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view component = path.substr(begin, end - begin);
    if (component.empty() || component == "." || component == "..") return false;
    begin = end + 1;
  }
  return true;
}

}  // namespace metaldoctor
