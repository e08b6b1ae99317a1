#include "tools/metaldoctor/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

namespace metaldoctor {
namespace {

/// Owns a descriptor; standard input is borrowed.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ > STDERR_FILENO) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

bool is_descriptor_path(std::string_view path) {
  return path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/") || path == "/dev/stdin";
}

auto unwritable(const std::string& path, const char* doing) {
  return fail(Fault::input, "unwritable", path, std::string(doing) + ": " + std::strerror(errno));
}

auto unreadable(const std::string& path, const char* doing) {
  return fail(Fault::input, "unreadable", path, std::string(doing) + ": " + std::strerror(errno));
}

Result<void> write_all(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return unwritable(path, "cannot write");
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

/// Opening a FIFO must not wait for its writer; reading afterwards may.
int open_to_read(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd >= 0) ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  return fd;
}

/// `mode`: of the file that is replaced; a new one gets what the process's mask allows.
Result<void> replace_file(const std::string& path, std::optional<mode_t> mode,
                          std::string_view bytes) {
  std::string temporary = path + ".XXXXXX";
  Descriptor fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (fd.get() < 0) return unwritable(path, "cannot create a temporary file beside it");
  const mode_t mask = ::umask(0);
  ::umask(mask);
  auto written = write_all(fd.get(), bytes, path);
  if (!written || ::fchmod(fd.get(), mode.value_or(0666 & ~mask)) != 0 || ::fsync(fd.get()) != 0 ||
      ::rename(temporary.c_str(), path.c_str()) != 0) {
    auto error = written ? Result<void>(unwritable(path, "cannot finish writing")) : written;
    ::unlink(temporary.c_str());
    return error;
  }
  return {};
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t limit) {
  const bool standard_input = path == "-";
  Descriptor fd(standard_input ? STDIN_FILENO : open_to_read(path));
  if (fd.get() < 0) return unreadable(path, "cannot open");
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return unreadable(path, "cannot stat");
  if (S_ISDIR(info.st_mode)) {
    return fail(Fault::input, "unreadable", path, "is a directory, expected a file");
  }
  if (!standard_input && (S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode))) {
    return fail(Fault::input, "unreadable", path, "is a device, expected a file");
  }
  // A FIFO in the file system may have no writer, and reading it would wait for ever; a pipe that
  // the shell set up (/dev/fd/63) has one.
  if (S_ISFIFO(info.st_mode) && !standard_input && !is_descriptor_path(path)) {
    return fail(Fault::input, "unreadable", path, "is a FIFO, expected a file",
                "pipe it to standard input and give - as the name");
  }
  std::string bytes;
  if (S_ISREG(info.st_mode) && info.st_size > 0 &&
      static_cast<std::size_t>(info.st_size) <= limit) {
    bytes.reserve(static_cast<std::size_t>(info.st_size));
  }
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return unreadable(path, "cannot read");
    if (n == 0) return bytes;
    if (bytes.size() + static_cast<std::size_t>(n) > limit) {
      return fail(Fault::input, "too-large", path,
                  "is larger than " + std::to_string(limit) + " bytes");
    }
    bytes.append(buffer, static_cast<std::size_t>(n));
  }
}

Result<void> write_file(const std::string& name, std::string_view bytes) {
  // A symbolic link keeps pointing where it does: its target is what is written.
  std::error_code no_target;
  const auto target = std::filesystem::canonical(name, no_target);
  const std::string path = no_target ? name : target.string();
  struct stat info{};
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) {
    return fail(Fault::input, "unwritable", path, "is a directory, expected a file name");
  }
  if (exists && !S_ISREG(info.st_mode)) {
    Descriptor fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK));
    if (fd.get() < 0) return unwritable(path, "cannot open");
    ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
    return write_all(fd.get(), bytes, path);
  }
  return replace_file(path, exists ? std::optional(info.st_mode & 07777) : std::nullopt, bytes);
}

}  // namespace metaldoctor
