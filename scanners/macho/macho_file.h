#pragma once
#include <string>
#include <vector>

#include "scanners/macho/bytes.h"
#include "tables/diagnostic.h"

namespace metaldoctor {

/// What a file is, from its first bytes.
enum class Container { unknown, thin, fat, archive };
Container container_of(Bytes bytes);

/// One Mach-O in a file: the file itself, an architecture of a fat file, an archive member, or a
/// member of an archive inside a fat file.
struct Slice {
  std::uint32_t cpu_type = 0;
  std::uint32_t cpu_subtype = 0;
  std::string arch;          ///< "arm64", "arm64e", "x86_64", "cpu 0x0100000d/0x00000003"
  std::string member;        ///< name in a static archive; empty otherwise
  std::uint64_t offset = 0;  ///< in the file
  Bytes bytes;
  std::string where;  ///< "file (arm64)", "file(member.o) (arm64)": for messages
};

std::string arch_name(std::uint32_t cpu_type, std::uint32_t cpu_subtype);

/// The 64-bit Mach-O slices of a file, in file order. Archive members that are no Mach-O (symbol
/// tables, bitcode) are left out; everything else that cannot be read is an error. The slices
/// point into `bytes`.
class MachOFile {
 public:
  static Result<MachOFile> read(Bytes bytes, std::string name);

  const std::string& name() const { return name_; }
  Container container() const { return container_; }
  const std::vector<Slice>& slices() const { return slices_; }

 private:
  Result<void> add_fat(Bytes bytes);
  Result<void> add_archive(Bytes bytes, std::uint64_t offset);
  Result<void> add_thin(Bytes bytes, std::uint64_t offset, std::string member);

  std::string name_;
  Container container_ = Container::unknown;
  std::vector<Slice> slices_;
};

}  // namespace metaldoctor
