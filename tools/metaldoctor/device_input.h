#pragma once
#include <string>

#include "scanners/device/capture.h"
#include "scanners/diagnose/diagnose.h"
#include "tools/metaldoctor/context.h"

namespace metaldoctor {

/// Where a device's answers come from: the options that scan and recommend share.
struct DeviceInput {
  std::string capture;  ///< a capture document, what metal-probe wrote, or a built-in capture
  std::string log;
  std::string probe;  ///< a program that prints like metal-probe
  std::string host_chip;
  std::string os;
  std::size_t device = 0;  ///< 1-based device of a log or a probe; 0 = the first

  void add_options(CLI::App& app);
  bool given() const { return !capture.empty() || !log.empty() || !probe.empty(); }
  std::string name() const;  ///< of the input, for messages
  Result<DiagnoseOptions> diagnose_options(const Tables& tables) const;
  /// Says on standard error when the input holds several devices and which one was taken.
  Result<Capture> read(const Tables& tables, Context& context) const;

 private:
  Result<std::vector<Capture>> devices(const Tables& tables) const;
};

}  // namespace metaldoctor
