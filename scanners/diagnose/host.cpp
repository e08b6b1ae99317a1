#include "scanners/diagnose/diagnose.h"

namespace metaldoctor {

std::pair<const Chip*, std::string> host_chip(const Tables& tables, const Capture& capture,
                                              const DiagnoseOptions& options) {
  if (options.host != nullptr) return {options.host, "--host-chip"};
  if (const Chip* chip = tables.chip(capture.system.cpu_brand)) return {chip, "cpu_brand"};
  // A guest's device has the paravirtual driver's name, whatever the host.
  if (capture.is_guest() == false) {
    if (const Chip* chip = tables.chip(capture.name)) return {chip, "device name"};
  }
  return {nullptr, {}};
}

}  // namespace metaldoctor
