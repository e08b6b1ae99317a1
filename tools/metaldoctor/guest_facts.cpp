#include "tools/metaldoctor/guest_facts.h"

#include <fmt/format.h>

#include "tools/platform/system.h"

namespace metaldoctor {
namespace {

std::string output_of(ProcessRunner& runner, const char* program,
                      std::vector<std::string> arguments) {
  ChildCommand command;
  command.program = program;
  command.arguments = std::move(arguments);
  const auto run = runner.capture(command, "", {.timeout = std::chrono::seconds(5)});
  return run && run->end.status() == 0 ? run->out : std::string();
}

PreflightWorld::Sip asked_sip(ProcessRunner& runner) {
  const std::string text = output_of(runner, "/usr/bin/csrutil", {"status"});
  if (text.find("status: enabled") != std::string::npos) return PreflightWorld::Sip::on;
  if (text.find("status: disabled") != std::string::npos) return PreflightWorld::Sip::off;
  return PreflightWorld::Sip::unknown;  // a custom configuration says neither
}

}  // namespace

void GuestFacts::add_options(CLI::App& app) {
  app.add_option("--sip", sip, "the guest's System Integrity Protection: on, off, or auto")
      ->check(CLI::IsMember({"auto", "on", "off"}))
      ->capture_default_str();
  app.add_option("--os", os, "the guest's macOS: 26.5")->type_name("VERSION");
}

Result<PreflightWorld> GuestFacts::world(ProcessRunner& runner) const {
  PreflightWorld world;
  if (sip == "on") world.sip = PreflightWorld::Sip::on;
  if (sip == "off") world.sip = PreflightWorld::Sip::off;
  if (sip == "auto" && kOnMacos) world.sip = asked_sip(runner);
  if (!os.empty()) {
    world.os = parse_os_version(os);
    if (!world.os) {
      return fail(Fault::usage, "bad-version", "--os",
                  fmt::format("'{}' is not a macOS version such as 26.5", os));
    }
  } else if (kOnMacos) {
    std::string text = output_of(runner, "/usr/bin/sw_vers", {"-productVersion"});
    text.erase(text.find_last_not_of("\n") + 1);
    world.os = parse_os_version(text);
  }
  return world;
}

}  // namespace metaldoctor
