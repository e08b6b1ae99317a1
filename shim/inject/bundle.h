#pragma once
#include "shim/inject/file_system.h"

namespace metaldoctor {

/// The executable of an application bundle, by its Info.plist; a path that is no directory is given
/// back as it is. Refused are bundles that hold no program (frameworks, plug-ins) and plain
/// directories.
Result<std::string> program_of(FileSystem& files, const std::string& path);

}  // namespace metaldoctor
