#pragma once
// How the project changes files. Only tools/platform implements it for a real system; tests have a
// fake that records every step and can be stopped after any of them.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tables/diagnostic.h"

namespace metaldoctor {

struct FileInfo {
  enum class Kind { absent, file, directory, link, other } kind = Kind::absent;
  unsigned mode = 0;   ///< permission bits, with setuid and setgid
  bool owned = false;  ///< by the user that this process runs as
  std::uint64_t size = 0;

  bool exists() const { return kind != Kind::absent; }
  bool is_file() const { return kind == Kind::file; }
  bool is_directory() const { return kind == Kind::directory; }
};

/// Every error has Fault::input and names the path. No call follows a symbolic link in the last
/// component, except real_path.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual Result<FileInfo> info(const std::string& path) = 0;
  /// The whole of a regular file; one that is larger than `limit` is an error.
  virtual Result<std::string> read(const std::string& path, std::size_t limit) = 0;
  /// At most the first `size` bytes of a regular file.
  virtual Result<std::string> read_start(const std::string& path, std::size_t size) = 0;
  /// Absolute, without links.
  virtual Result<std::string> real_path(const std::string& path) = 0;
  /// The names in a directory, sorted.
  virtual Result<std::vector<std::string>> list(const std::string& path) = 0;

  /// A file that must not exist yet, with its bytes on disk when this returns. On an error nothing,
  /// or a part of the file, may be left.
  virtual Result<void> write_new(const std::string& path, std::string_view bytes,
                                 unsigned mode) = 0;
  virtual Result<void> rename(const std::string& from, const std::string& to) = 0;
  virtual Result<void> remove(const std::string& path) = 0;
  virtual Result<void> make_directory(const std::string& path, unsigned mode) = 0;
  virtual Result<void> remove_directory(const std::string& path) = 0;
  /// Makes the names in a directory last: until then a power cut may undo a rename or a removal.
  virtual Result<void> sync_directory(const std::string& path) = 0;
};

/// The directory that a path lies in; "." for a plain name.
std::string parent_directory(const std::string& path);
/// The last component.
std::string file_name_of(const std::string& path);
/// Absolute, and without empty, "." and ".." components: what may stand in a receipt.
bool is_plain_absolute(std::string_view path);

}  // namespace metaldoctor
