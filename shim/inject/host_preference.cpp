#include "shim/inject/host_preference.h"

#include <fmt/format.h>

namespace metaldoctor {
namespace {

constexpr const char* kDefaults = "/usr/bin/defaults";

ReceiptCommand defaults_command(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), kDefaults);
  return {std::move(arguments), false};
}

ReceiptCommand write_command(bool value) {
  return defaults_command({"write", std::string(kPreferenceDomain), std::string(kPreferenceKey),
                           "-bool", value ? "true" : "false"});
}

ReceiptCommand delete_command() {
  return defaults_command({"delete", std::string(kPreferenceDomain), std::string(kPreferenceKey)});
}

}  // namespace

const std::vector<PreferenceFact>& preference_facts() {
  static const std::vector<PreferenceFact> facts{
      {"it belongs to the host and counts for every guest that this user starts, whatever starts "
       "it",
       Evidence::read, "trycua/cua docs, Lume guide \"GPU passthrough\" (2026-08)"},
      {"a guest must be stopped and started again before it counts", Evidence::read,
       "trycua/cua docs, Lume guide \"GPU passthrough\" (2026-08)"},
      {"in the one controlled test it changed no reported answer: on and without a library the "
       "guest "
       "still denied Apple7; off and with one it reported Apple7",
       Evidence::measured,
       "ardanlabs/kronk zarf/macos/README.md at 6c3a261 (M4 Max, host 26.6.2, guest 26.6.1)"},
      {"whether it changes what the device can execute is not known", Evidence::unknown,
       "ardanlabs/kronk zarf/macos/README.md at 6c3a261"},
      {"Apple does not document it", Evidence::inferred, "no page of Apple's names it"},
  };
  return facts;
}

const std::vector<VmProduct>& vm_products() {
  static const std::vector<VmProduct> products{
      {"Lume", "lume stop NAME", "lume run NAME"},
      {"Tart", "tart stop NAME", "tart run NAME"},
      {"UTM", "utmctl stop NAME", "utmctl start NAME"},
      {"Anka", "anka stop NAME", "anka start NAME"},
  };
  return products;
}

Result<std::optional<std::string>> read_preference(ProcessRunner& runner) {
  ChildCommand command;
  command.program = kDefaults;
  command.arguments = {"read", std::string(kPreferenceDomain), std::string(kPreferenceKey)};
  const auto run =
      runner.capture(command, "", {.output = 4096, .timeout = std::chrono::seconds(10)});
  if (!run) return tl::unexpected(run.error());
  if (run->end.status() == 0) {
    const std::string value = run->out.substr(0, run->out.find('\n'));
    if (value == "1" || value == "0") return std::optional(value);
    return fail(Fault::input, "preference", kDefaults,
                "the preference is neither true nor false: set by something else");
  }
  if (run->err.find("does not exist") != std::string::npos) return std::optional<std::string>();
  return fail(Fault::input, "preference", kDefaults,
              fmt::format("ended with status {}", run->end.status()));
}

ChangePlan preference_plan(bool wanted, const std::optional<std::string>& before) {
  ChangePlan plan;
  plan.action = "host-preference";
  plan.subject = fmt::format("{} {}", kPreferenceDomain, kPreferenceKey);
  // Disabled is the state of a Mac that was never touched: the key is absent.
  if (wanted) {
    plan.after.push_back(write_command(true));
  } else if (before) {
    plan.after.push_back(delete_command());
  }
  if (before) {
    plan.undo_after.push_back(write_command(*before == "1"));
  } else if (wanted) {
    plan.undo_after.push_back(delete_command());
    plan.undo_after.back().may_fail = true;
  }
  return plan;
}

}  // namespace metaldoctor
