#pragma once
#include "scanners/code/findings.h"
#include "scanners/code/vocabulary.h"
#include "scanners/macho/macho_file.h"

namespace metaldoctor {

/// Audits one Mach-O slice: which questions its code asks the device, with which arguments, and
/// what hangs on the answers. arm64 and arm64e; an x86_64 slice gives its identity and a note.
/// Reads nothing but `slice.bytes`; `path` is for the document.
Result<Findings> audit(const Slice& slice, const Vocabulary& words, std::string_view path);

}  // namespace metaldoctor
