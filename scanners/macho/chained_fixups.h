#pragma once
#include "scanners/macho/fixups.h"

namespace llvm::MachO {
struct dyld_chained_fixups_header;
}

namespace metaldoctor {

/// Reads the payload of LC_DYLD_CHAINED_FIXUPS into a Fixups. Internal to scanners/macho.
class ChainedReader {
 public:
  ChainedReader(const Image& image, Fixups& out);
  Result<void> read();

 private:
  struct RawImport {
    std::uint64_t name_offset;
    int library;
    bool weak;
    std::int64_t addend;
  };
  Result<void> imports(const llvm::MachO::dyld_chained_fixups_header& header);
  static RawImport import(std::uint32_t format, Bytes table, std::uint64_t at);
  Result<void> starts(std::uint64_t offset);
  Result<void> segment(std::uint32_t index, std::uint64_t at);
  tl::unexpected<Diagnostic> bad(std::uint64_t offset, std::string what) const;

  const Image& image_;
  Fixups& out_;
  Bytes payload_;
  std::uint64_t payload_offset_;
};

}  // namespace metaldoctor
