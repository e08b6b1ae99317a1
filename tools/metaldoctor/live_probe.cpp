#include "tools/metaldoctor/live_probe.h"

#include <fmt/core.h>

#include "tools/platform/executable_path.h"

namespace metaldoctor {

std::string own_probe() {
#if defined(__APPLE__)
  const auto path = executable_directory() / "metal-probe";
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) return path.string();
#endif
  return {};
}

Result<std::string> run_probe(ProcessRunner& runner, const std::string& path) {
  // A driver that hangs must not hang the caller: asking takes a few milliseconds.
  CaptureLimits limits;
  limits.output = std::size_t{16} << 20;
  limits.timeout = std::chrono::seconds(30);
  auto run = runner.capture({path, {}, {}, {}}, {}, limits);
  if (!run) return tl::unexpected(run.error());
  if (run->end.status() != 0) {
    return fail(Fault::input, "probe-failed", path,
                run->end.signal != 0 ? fmt::format("ended by signal {}", run->end.signal)
                                     : fmt::format("exit status {}", run->end.code),
                "run it by hand: what it prints is what scan --capture reads");
  }
  return std::move(run->out);
}

}  // namespace metaldoctor
