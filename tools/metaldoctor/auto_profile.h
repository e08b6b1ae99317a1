#pragma once
#include <string>
#include <vector>

#include "shim/profile.h"
#include "tools/metaldoctor/context.h"
#include "tools/metaldoctor/device_input.h"

namespace metaldoctor {

/// scan, audit and recommend in one: the profile of `run --auto`.
struct AutoProfile {
  DeviceInput device;
  std::vector<std::string> apps;   ///< rules, as recommend's --app
  std::vector<std::string> files;  ///< binaries besides the program itself

  void add_options(CLI::App& app);
  bool has_options() const { return device.given() || !apps.empty() || !files.empty(); }
  /// `program`: the file that is started; it is audited with the libraries beside it that it links.
  Result<Profile> make(Context& context, const Tables& tables, const std::string& program) const;
};

}  // namespace metaldoctor
