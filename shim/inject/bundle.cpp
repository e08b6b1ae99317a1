#include "shim/inject/bundle.h"

#include <fmt/format.h>

#include "shim/inject/plist.h"

namespace metaldoctor {

Result<std::string> program_of(FileSystem& files, const std::string& path) {
  auto real = files.real_path(path);
  if (!real) return tl::unexpected(real.error());
  const auto info = files.info(*real);
  if (!info) return tl::unexpected(info.error());
  if (!info->is_directory()) return std::move(*real);
  const std::string list_path = *real + "/Contents/Info.plist";
  const auto list_info = files.info(list_path);
  if (!list_info || !list_info->is_file()) {
    return fail(Fault::usage, "not-a-program", path,
                "is a directory without Contents/Info.plist, expected a program or an .app bundle");
  }
  const auto text = files.read(list_path, PlistLimits().bytes);
  if (!text) return tl::unexpected(text.error());
  const auto list = Plist::read(*text, list_path);
  if (!list) return tl::unexpected(list.error());
  const auto name = list->text("CFBundleExecutable");
  if (!name || name->empty() || *name == "." || *name == ".." ||
      name->find('/') != std::string::npos) {
    return fail(Fault::input, "plist-malformed", list_path,
                "expected CFBundleExecutable to be a file name");
  }
  return files.real_path(fmt::format("{}/Contents/MacOS/{}", *real, *name));
}

}  // namespace metaldoctor
