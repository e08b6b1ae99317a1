#pragma once
// Whole directories and bundles: every Mach-O file below them, audited on several threads.
#include <functional>
#include <string>
#include <vector>

#include "tools/metaldoctor/binary_input.h"

namespace metaldoctor {

/// What lies below one path. Links are not followed: a framework's point into itself.
struct BinaryTree {
  bool is_directory = false;
  std::vector<std::string> files;      ///< Mach-O files and archives, sorted
  std::size_t others = 0;              ///< regular files of other kinds
  std::vector<Diagnostic> unreadable;  ///< files and directories that could not be looked at
};
/// A file is a tree of its own, whatever it holds.
Result<BinaryTree> find_binaries(const std::string& path);

/// One file of a tree after its audit.
struct AuditedFile {
  std::string path;
  Result<std::vector<AuditedImage>> images = std::vector<AuditedImage>{};
  std::vector<Diagnostic> unread;  ///< slices and members that could not be read
};

/// In the order of `paths`, whichever thread was first. `progress` is called from the caller's
/// thread now and then with the number of files that are done.
std::vector<AuditedFile> audit_files(const Tables& tables, const std::vector<std::string>& paths,
                                     const std::string& arch, unsigned threads,
                                     const std::function<void(std::size_t)>& progress);

/// Takes images out that are in `files` already: same UUID, contents, architecture and member.
/// Gives how many.
std::size_t remove_copies(std::vector<AuditedFile>& files);

}  // namespace metaldoctor
