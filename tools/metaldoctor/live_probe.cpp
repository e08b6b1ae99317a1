#include "tools/metaldoctor/live_probe.h"

#include <fmt/core.h>

#include "tools/platform/executable_path.h"
#include "tools/render/text_style.h"

namespace metaldoctor {

namespace {

/// What a program said last, to go into a message.
std::string last_line(std::string_view text) {
  constexpr std::size_t kLongest = 200;
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  text = text.substr(text.rfind('\n') + 1);
  return printable(text.substr(0, kLongest));
}

}  // namespace

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
    const std::string said = last_line(run->err);
    return fail(Fault::input, "probe-failed", path,
                fmt::format("{} {}{}{}", run->end.signal != 0 ? "ended by signal" : "exit status",
                            run->end.signal != 0 ? run->end.signal : run->end.code,
                            said.empty() ? "" : ": ", said),
                "run it by hand: what it prints is what scan --capture reads");
  }
  return std::move(run->out);
}

}  // namespace metaldoctor
