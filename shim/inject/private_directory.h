#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "shim/inject/file_system.h"

namespace metaldoctor {

inline constexpr unsigned kPrivateDirectory = 0700, kPrivateFile = 0600;

/// Makes `path` and what is missing above it, mode 0700. Refused (Fault::refused) is a directory
/// that is a link, that is not this user's, or that others may write: its files could be swapped.
Result<void> make_private_directory(FileSystem& files, const std::string& path);

/// The directories above and with `path` that are not there yet, outermost first.
Result<std::vector<std::string>> missing_directories(FileSystem& files, const std::string& path);

/// Writes beside `path` as `temporary`, on disk, then puts it in place: a reader sees the old bytes
/// or the new ones. A `temporary` that an earlier attempt left is removed first. After an error the
/// temporary file is gone, if it can be removed at all.
Result<void> replace_file(FileSystem& files, const std::string& path, const std::string& temporary,
                          std::string_view bytes, unsigned mode);

}  // namespace metaldoctor
