#include "tools/metaldoctor/assumed_device.h"

namespace metaldoctor {

void BranchInput::add_options(CLI::App& app) {
  auto* assume_option =
      app.add_option("--assume", assume,
                     "which way each path goes on this device: paravirtual, a capture or a chip");
  assume_option->type_name("CAPTURE|CHIP");
  app.add_option("--diff", diff,
                 "which paths of the files go another way on two devices; without files: what two "
                 "builds of a program ask differently")
      ->type_name("A B")
      ->expected(2)
      ->excludes(assume_option);
  app.add_option("--host-chip", device.host_chip,
                 "with --assume: the chip of the Mac that runs the guest")
      ->type_name("CHIP")
      ->needs(assume_option);
  app.add_option("--os", device.os, "the macOS, where a capture does not name it: 26.5")
      ->type_name("VERSION");
  app.add_option("--env", environment, "a variable that the program will have set")
      ->type_name("NAME")
      ->allow_extra_args(false);
}

Result<AssumedDevice> BranchInput::device_named(const Tables& tables, Context& context,
                                                const std::string& name) const {
  if (const Chip* chip = tables.chip(name)) {
    OsKnowledge os;
    os.exact = options_.diagnose.os;
    return device_of_chip(tables, *chip, os);
  }
  DeviceInput input = device;
  input.capture = name;
  auto capture = input.read(tables, context);
  if (!capture) {
    Diagnostic error = capture.error();
    if (!error.hint.empty()) error.hint += "; metaldoctor tables chips lists the chips";
    return tl::unexpected(error);
  }
  return AssumedDevice{name, std::move(*capture)};
}

Result<void> BranchInput::read(const Tables& tables, Context& context) {
  auto diagnose = device.diagnose_options(tables);
  if (!diagnose) return tl::unexpected(diagnose.error());
  options_.diagnose = *diagnose;
  for (const std::string& name : environment) options_.environment.emplace_back(name, true);
  std::vector<std::string> names = diff;
  if (!assume.empty()) names = {assume};
  for (const std::string& name : names) {
    auto named = device_named(tables, context, name);
    if (!named) return tl::unexpected(named.error());
    devices_.push_back(std::move(*named));
  }
  return {};
}

Result<std::optional<BranchComparison>> BranchInput::compare(const Tables& tables,
                                                             const std::vector<Path>& paths) const {
  if (devices_.empty()) return std::optional<BranchComparison>();
  if (devices_.size() == 2) {
    return std::optional(compare_devices(tables, devices_[0], devices_[1], paths, options_));
  }
  auto comparison = compare_with_host(tables, devices_[0], paths, options_);
  if (!comparison) return tl::unexpected(comparison.error());
  return std::optional(std::move(*comparison));
}

}  // namespace metaldoctor
