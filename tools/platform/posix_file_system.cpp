#include "tools/platform/posix_file_system.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "tools/platform/descriptor.h"

namespace metaldoctor {
namespace {

tl::unexpected<Diagnostic> cannot(const std::string& path, std::string_view doing) {
  const int error = errno;
  const char* code = error == ENOENT ? "absent" : "file-system";
  return fail(Fault::input, code, path, fmt::format("cannot {}: {}", doing, std::strerror(error)));
}

Result<void> done(int status, const std::string& path, std::string_view doing) {
  if (status == 0) return {};
  return cannot(path, doing);
}

/// Opening a FIFO must not wait, and what is opened must be what was looked at.
Result<Descriptor> open_file(const std::string& path) {
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.is_open()) return cannot(path, "open");
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return cannot(path, "stat");
  if (!S_ISREG(info.st_mode)) {
    return fail(Fault::input, "not-a-file", path, "is not a regular file");
  }
  return fd;
}

/// At most `size` bytes.
Result<std::string> read_bytes(int fd, std::size_t size, const std::string& path) {
  std::string bytes;
  char buffer[1 << 16];
  while (bytes.size() < size) {
    const ssize_t n = ::read(fd, buffer, std::min(sizeof buffer, size - bytes.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return cannot(path, "read");
    if (n == 0) break;
    bytes.append(buffer, static_cast<std::size_t>(n));
  }
  return bytes;
}

int sync_fully(int fd) {
#if defined(__APPLE__)
  // fsync of macOS leaves the bytes in the drive's cache.
  if (::fcntl(fd, F_FULLFSYNC) == 0) return 0;
#endif
  return ::fsync(fd);
}

}  // namespace

Result<FileInfo> PosixFileSystem::info(const std::string& path) {
  struct stat raw{};
  FileInfo out;
  if (::lstat(path.c_str(), &raw) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return out;
    return cannot(path, "stat");
  }
  using Kind = FileInfo::Kind;
  out.kind = S_ISREG(raw.st_mode)   ? Kind::file
             : S_ISDIR(raw.st_mode) ? Kind::directory
             : S_ISLNK(raw.st_mode) ? Kind::link
                                    : Kind::other;
  out.mode = raw.st_mode & 07777;
  out.owned = raw.st_uid == ::geteuid();
  out.size = static_cast<std::uint64_t>(raw.st_size);
  return out;
}

Result<std::string> PosixFileSystem::read(const std::string& path, std::size_t limit) {
  const auto fd = open_file(path);
  if (!fd) return tl::unexpected(fd.error());
  auto bytes = read_bytes(fd->get(), limit + 1, path);
  if (bytes && bytes->size() > limit) {
    return fail(Fault::input, "too-large", path, fmt::format("is larger than {} bytes", limit));
  }
  return bytes;
}

Result<std::string> PosixFileSystem::read_start(const std::string& path, std::size_t size) {
  const auto fd = open_file(path);
  if (!fd) return tl::unexpected(fd.error());
  return read_bytes(fd->get(), size, path);
}

Result<std::string> PosixFileSystem::real_path(const std::string& path) {
  char* real = ::realpath(path.c_str(), nullptr);
  if (!real) return cannot(path, "find");
  std::string out = real;
  std::free(real);
  return out;
}

Result<std::vector<std::string>> PosixFileSystem::list(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator at(path, error), end;
  for (; !error && at != end; at.increment(error)) names.push_back(at->path().filename().string());
  if (error) {
    errno = error.value();
    return cannot(path, "list");
  }
  std::ranges::sort(names);
  return names;
}

Result<void> PosixFileSystem::write_new(const std::string& path, std::string_view bytes,
                                        unsigned mode) {
  Descriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.is_open()) return cannot(path, "create");
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return cannot(path, "write");
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  // The mode is exact: neither the process's mask nor an earlier file decides it.
  if (::fchmod(fd.get(), static_cast<mode_t>(mode)) != 0 || sync_fully(fd.get()) != 0) {
    return cannot(path, "finish writing");
  }
  return {};
}

Result<void> PosixFileSystem::rename(const std::string& from, const std::string& to) {
  return done(::rename(from.c_str(), to.c_str()), to, "put a file in place");
}

Result<void> PosixFileSystem::remove(const std::string& path) {
  return done(::unlink(path.c_str()), path, "remove");
}

Result<void> PosixFileSystem::make_directory(const std::string& path, unsigned mode) {
  return done(::mkdir(path.c_str(), static_cast<mode_t>(mode)), path, "make a directory");
}

Result<void> PosixFileSystem::remove_directory(const std::string& path) {
  return done(::rmdir(path.c_str()), path, "remove the directory");
}

Result<void> PosixFileSystem::sync_directory(const std::string& path) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY));
  if (!fd.is_open()) return cannot(path, "open");
  return done(sync_fully(fd.get()), path, "sync");
}

std::int64_t SystemClock::seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

}  // namespace metaldoctor
