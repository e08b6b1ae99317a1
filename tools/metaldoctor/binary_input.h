#pragma once
#include <string>
#include <vector>

#include "shim/binary_paths.h"
#include "tools/metaldoctor/mapped_file.h"

namespace metaldoctor {

/// One audited slice with the programs it was recognised as.
struct AuditedImage {
  Findings findings;
  std::vector<RecognisedProgram> programs;
};

/// Audits the slices of one file. With `arch` only that one; a file without it is an error.
Result<std::vector<AuditedImage>> audit_file(const Tables& tables, const std::string& path,
                                             const std::string& arch);

}  // namespace metaldoctor
