#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "tables/diagnostic.h"

namespace metaldoctor {

/// Reads a whole regular file or FIFO, or standard input for "-". More than `limit` bytes is an
/// error, not a truncation. Directories and devices other than standard input are refused.
Result<std::string> read_file(const std::string& path, std::size_t limit = std::size_t{64} << 20);

/// Writes to a temporary name in the same directory, syncs, and renames over `path`, so that a
/// reader sees the old bytes or the new ones. An existing device or FIFO is written in place.
Result<void> write_file(const std::string& path, std::string_view bytes);

}  // namespace metaldoctor
