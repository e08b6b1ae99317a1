#include "tools/metaldoctor/simulator_process.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "tools/platform/executable_path.h"

namespace metaldoctor {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kName = "metaldoctor-sim";

bool is_program(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

Result<std::string> find_simulator(const std::string& given) {
  if (!given.empty()) {
    if (is_program(given)) return given;
    return fail(Fault::input, "simulator-missing", given, "is no program that can be run");
  }
  std::vector<fs::path> places = {executable_directory()};
  const char* path = std::getenv("PATH");
  std::string_view list = path ? path : "";
  while (!list.empty()) {
    const auto end = std::min(list.find(':'), list.size());
    if (end > 0) places.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  for (const fs::path& place : places) {
    if (!place.empty() && is_program(place / kName)) return (place / kName).string();
  }
  return fail(Fault::input, "simulator-missing", std::string(kName),
              "is neither beside metaldoctor nor in PATH",
              "it is built where Unicorn is installed; --simulator names it");
}

Simulator simulator_process(ProcessRunner& runner, const std::string& program) {
  return [&runner, program](const Json& request) -> Result<Json> {
    const ChildCommand command{program, {"--compact"}, {}, {}};
    const auto run = runner.capture(command, request.dump(), {});
    if (!run) return tl::unexpected(run.error());
    if (run->end.status() != 0) {
      // Only its own words are about the library; anything else is another program, or a crash.
      const std::string first = run->err.substr(0, run->err.find('\n'));
      const bool own = run->end.signal == 0 && first.starts_with(fmt::format("{}: ", kName));
      return fail(Fault::input, own ? std::string(kSimulatorFailed) : "simulator-unusable", program,
                  fmt::format("ended with status {}{}{}", run->end.status(),
                              first.empty() ? "" : ": ", first));
    }
    return parse_json(run->out, program);
  };
}

}  // namespace metaldoctor
