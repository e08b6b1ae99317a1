#pragma once
#include <optional>
#include <string>
#include <vector>

#include "shim/branches.h"
#include "tools/metaldoctor/device_input.h"

namespace metaldoctor {

/// Which device an audit assumes, and which one it compares with: --assume or --diff.
struct BranchInput {
  std::string assume;             ///< a chip, a built-in capture or a file
  std::vector<std::string> diff;  ///< two of these
  DeviceInput device;             ///< --host-chip, --os
  std::vector<std::string> environment;

  void add_options(CLI::App& app);
  bool given() const { return !assume.empty() || !diff.empty(); }
  /// Reads the devices; says on standard error which of several in a file was taken.
  Result<void> read(const Tables& tables, Context& context);
  /// Nothing where no device was named.
  Result<std::optional<BranchComparison>> compare(const Tables& tables,
                                                  const std::vector<Path>& paths) const;

 private:
  Result<AssumedDevice> device_named(const Tables& tables, Context& context,
                                     const std::string& name) const;

  std::vector<AssumedDevice> devices_;
  RecommendOptions options_;
};

}  // namespace metaldoctor
