#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "tables/diagnostic.h"

namespace metaldoctor {

/// A regular file mapped read-only, so that an audit of a large binary touches only what it reads.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;

  std::span<const std::uint8_t> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  std::span<const std::uint8_t> bytes_;
};

}  // namespace metaldoctor
