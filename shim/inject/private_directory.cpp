#include "shim/inject/private_directory.h"

#include <algorithm>

namespace metaldoctor {
namespace {

constexpr unsigned kOthersMayWrite = 022;

Result<void> check_private(FileSystem& files, const std::string& path) {
  const auto info = files.info(path);
  if (!info) return tl::unexpected(info.error());
  if (info->is_directory() && info->owned && !(info->mode & kOthersMayWrite)) return {};
  return fail(Fault::refused, "directory-not-private", path,
              info->is_directory() ? "belongs to another user, or others may write to it"
                                   : "is not a directory",
              "remove it, or make it yours alone: chmod 700");
}

}  // namespace

Result<std::vector<std::string>> missing_directories(FileSystem& files, const std::string& path) {
  std::vector<std::string> missing;
  for (std::string at = path;; at = parent_directory(at)) {
    const auto info = files.info(at);
    if (!info) return tl::unexpected(info.error());
    if (info->exists()) break;
    missing.push_back(at);
    if (parent_directory(at) == at) break;
  }
  std::ranges::reverse(missing);
  return missing;
}

Result<void> make_private_directory(FileSystem& files, const std::string& path) {
  const auto missing = missing_directories(files, path);
  if (!missing) return tl::unexpected(missing.error());
  for (const std::string& each : *missing) {
    if (auto made = files.make_directory(each, kPrivateDirectory); !made) return made;
    if (auto synced = files.sync_directory(parent_directory(each)); !synced) return synced;
  }
  return check_private(files, path);
}

Result<void> replace_file(FileSystem& files, const std::string& path, const std::string& temporary,
                          std::string_view bytes, unsigned mode) {
  const auto left = files.info(temporary);
  if (!left) return tl::unexpected(left.error());
  if (left->exists()) {
    if (auto removed = files.remove(temporary); !removed) return removed;
  }
  auto written = files.write_new(temporary, bytes, mode);
  if (written) written = files.rename(temporary, path);
  if (!written) {
    (void)files.remove(temporary);
    return written;
  }
  return files.sync_directory(parent_directory(path));
}

}  // namespace metaldoctor
