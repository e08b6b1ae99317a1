#pragma once
#include <string>

#include "scanners/device/capture.h"
#include "scanners/diagnose/diagnose.h"
#include "tools/metaldoctor/context.h"

namespace metaldoctor {

/// Where a device's answers come from: the options that scan and recommend share.
struct DeviceInput {
  std::string capture;
  std::string log;
  std::string host_chip;
  std::string os;
  std::size_t block = 0;  ///< 1-based device block of a log; 0 = the first

  void add_options(CLI::App& app);
  bool given() const { return !capture.empty() || !log.empty(); }
  Result<DiagnoseOptions> diagnose_options(const Tables& tables) const;
  /// Says on standard error when a log holds several devices and which one was taken.
  Result<Capture> read(const Tables& tables, Context& context) const;
};

}  // namespace metaldoctor
