#pragma once
#include "shim/inject/clock.h"
#include "shim/inject/file_system.h"

namespace metaldoctor {

class PosixFileSystem final : public FileSystem {
 public:
  Result<FileInfo> info(const std::string& path) override;
  Result<std::string> read(const std::string& path, std::size_t limit) override;
  Result<std::string> read_start(const std::string& path, std::size_t size) override;
  Result<std::string> real_path(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& path) override;
  Result<void> write_new(const std::string& path, std::string_view bytes, unsigned mode) override;
  Result<void> rename(const std::string& from, const std::string& to) override;
  Result<void> remove(const std::string& path) override;
  Result<void> make_directory(const std::string& path, unsigned mode) override;
  Result<void> remove_directory(const std::string& path) override;
  Result<void> sync_directory(const std::string& path) override;
};

class SystemClock final : public Clock {
 public:
  std::int64_t seconds() override;
};

}  // namespace metaldoctor
