#include "shim/inject/injection.h"

#include <fmt/format.h>

#include <algorithm>

#include "shim/inject/private_directory.h"

namespace metaldoctor {
namespace {

constexpr std::string_view kOurPrefix = "libmetaldoctor-";
constexpr std::size_t kLargestLibrary = std::size_t{16} << 20;

std::string_view name_of(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

void set_variable(std::vector<std::string>& variables, std::string_view name, std::string value) {
  std::string entry = fmt::format("{}={}", name, value);
  // getenv takes the first of several; the others are dropped so that none comes back.
  std::erase_if(variables, [&](const std::string& each) { return name_of(each) == name; });
  variables.push_back(std::move(entry));
}

std::string value_of(const std::vector<std::string>& variables, std::string_view name) {
  const auto found = std::ranges::find_if(
      variables, [&](const std::string& each) { return name_of(each) == name; });
  return found == variables.end() || found->size() == name.size() ? std::string()
                                                                  : found->substr(name.size() + 1);
}

}  // namespace

Result<std::string> store_library(FileSystem& files, const std::string& directory,
                                  const std::string& file_name, std::string_view bytes) {
  const std::string path = directory + '/' + file_name;
  if (!is_plain_absolute(path) || path.find(':') != std::string::npos) {
    return fail(Fault::refused, "library-path", path,
                "dyld needs an absolute path, and splits DYLD_INSERT_LIBRARIES at ':'",
                "use a home directory without one");
  }
  if (auto made = make_private_directory(files, directory); !made) {
    return tl::unexpected(made.error());
  }
  const auto info = files.info(path);
  if (!info) return tl::unexpected(info.error());
  if (info->is_file() && info->owned) {
    const auto there = files.read(path, kLargestLibrary);
    if (there && *there == bytes) return path;
  } else if (info->exists()) {
    return fail(Fault::refused, "library-path", path, "is not a file of yours", "remove it");
  }
  // A fresh file: the kernel keeps the signature of one that was edited in place.
  auto written = replace_file(files, path, path + ".new", bytes, kPrivateFile);
  if (!written) return tl::unexpected(written.error());
  return path;
}

std::string with_library(std::string_view list, std::string_view library) {
  std::string out(library);
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(':', begin), list.size());
    const std::string_view entry = list.substr(begin, end - begin);
    const std::string_view leaf = entry.substr(entry.rfind('/') + 1);
    if (!entry.empty() && entry != library && !leaf.starts_with(kOurPrefix)) {
      out.append(":").append(entry);
    }
    begin = end + 1;
  }
  return out;
}

std::vector<std::string> injected_environment(std::vector<std::string> variables,
                                              const std::vector<std::string>& assignments,
                                              const std::string& library,
                                              const std::string& journal) {
  for (const std::string& assignment : assignments) {
    const std::string_view name = name_of(assignment);
    set_variable(variables, name, assignment.substr(name.size() + 1));
  }
  set_variable(variables, kInsertVariable,
               with_library(value_of(variables, kInsertVariable), library));
  if (!journal.empty()) set_variable(variables, kJournalVariable, journal);
  return variables;
}

Result<FileInfo> check_journal_path(FileSystem& files, const std::string& path) {
  const auto info = files.info(path);
  if (!info) return tl::unexpected(info.error());
  if (!info->exists() || (info->is_file() && info->owned)) return *info;
  return fail(Fault::refused, "journal-path", path,
              info->is_file() ? "belongs to another user"
                              : "is a link, a FIFO, a directory or a device, expected a file",
              "name a file that does not exist yet");
}

}  // namespace metaldoctor
