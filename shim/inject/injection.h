#pragma once
// What one injected process needs: the library in a place that only this user can write, and an
// environment that names it for this process alone.
#include <optional>
#include <string>
#include <vector>

#include "shim/inject/file_system.h"
#include "tables/diagnostic.h"

namespace metaldoctor {

inline constexpr std::string_view kInsertVariable = "DYLD_INSERT_LIBRARIES";
inline constexpr std::string_view kJournalVariable = "METALDOCTOR_JOURNAL";

/// Puts the library into `directory`, which is made private, and gives its path. One that is there
/// already with the same bytes stays.
Result<std::string> store_library(FileSystem& files, const std::string& directory,
                                  const std::string& file_name, std::string_view bytes);

/// The list with `library` in front; a library of ours that is in it already is left out, so that
/// one process never gets two.
std::string with_library(std::string_view list, std::string_view library);

/// The variables of a process with `assignments` made and the library and journal named.
std::vector<std::string> injected_environment(std::vector<std::string> variables,
                                              const std::vector<std::string>& assignments,
                                              const std::string& library,
                                              const std::string& journal);

/// Refused (Fault::refused) is anything but a regular file of this user, or a name that is free:
/// the process would append to what a link leads to, or wait for the reader of a FIFO.
Result<FileInfo> check_journal_path(FileSystem& files, const std::string& path);

}  // namespace metaldoctor
