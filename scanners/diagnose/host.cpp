#include <fmt/format.h>

#include "scanners/diagnose/diagnose.h"

namespace metaldoctor {
namespace {

/// A brand that names a chip; "Apple processor", as old guests say, does not.
bool names_a_chip(std::string_view brand) {
  constexpr std::string_view kSeries = "Apple M";
  return brand.starts_with(kSeries) && brand.size() > kSeries.size() &&
         brand[kSeries.size()] >= '0' && brand[kSeries.size()] <= '9';
}

}  // namespace

HostChip host_chip(const Tables& tables, const Capture& capture, const DiagnoseOptions& options) {
  const std::string& brand = capture.system.cpu_brand;
  HostChip host{tables.chip(brand), "cpu_brand", {}};
  // A guest's device has the paravirtual driver's name, whatever the host.
  if (host.chip == nullptr && capture.is_guest() == false) {
    host = {tables.chip(capture.name), "device name", {}};
  }
  if (host.chip == nullptr) {
    host = {options.host, options.host != nullptr ? "--host-chip" : "", {}};
    if (options.host != nullptr && names_a_chip(brand)) {
      host.contradiction = fmt::format(
          "--host-chip names {}, but the device's CPU brand is '{}', a chip that the tables do "
          "not have",
          options.host->name, brand);
    }
  } else if (options.host != nullptr && options.host != host.chip) {
    host.contradiction =
        fmt::format("--host-chip names {}, but the {} names {}", options.host->name,
                    host.source == "cpu_brand" ? "CPU brand" : host.source, host.chip->name);
  }
  return host;
}

}  // namespace metaldoctor
