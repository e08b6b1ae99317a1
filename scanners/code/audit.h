#pragma once
#include <memory>

#include "scanners/code/findings.h"
#include "scanners/code/vocabulary.h"
#include "scanners/macho/macho_file.h"

namespace metaldoctor {

class Decoder;

/// Audits Mach-O slices: which questions their code asks the device, with which arguments, and what
/// hangs on the answers. arm64, arm64e and x86_64; other slices give their identity and
/// a note.
/// One instance serves many slices and keeps the disassembler between them; it is for one thread.
class Auditor {
 public:
  /// `words` must outlive the auditor.
  explicit Auditor(const Vocabulary& words);
  ~Auditor();
  Auditor(Auditor&&) noexcept;

  /// Reads nothing but `slice.bytes`; `path` is for the document.
  Result<Findings> audit(const Slice& slice, std::string_view path);

 private:
  const Vocabulary* words_;
  std::unique_ptr<Decoder> arm64_, x86_64_;  ///< made when the first slice needs them
};

/// One slice, with an auditor of its own.
Result<Findings> audit(const Slice& slice, const Vocabulary& words, std::string_view path);

}  // namespace metaldoctor
