#pragma once
#include <optional>
#include <string>
#include <vector>

#include "shim/binary_paths.h"
#include "shim/inject/preflight.h"
#include "tools/metaldoctor/mapped_file.h"

namespace metaldoctor {

/// One audited slice with the programs it was recognised as.
struct AuditedImage {
  Findings findings;
  std::vector<RecognisedProgram> programs;
  std::optional<Preflight> injection;  ///< of a program; libraries have no say in it
};

/// Audits the slices of one file. With `arch` only that one; a file without it is an error. A slice
/// or member that cannot be read goes to `unread`, and the others are audited all the same; where
/// `unread` is null, or nothing else is there, it is the error.
Result<std::vector<AuditedImage>> audit_file(const Tables& tables, const std::string& path,
                                             const std::string& arch,
                                             std::vector<Diagnostic>* unread = nullptr);

}  // namespace metaldoctor
