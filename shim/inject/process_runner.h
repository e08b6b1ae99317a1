#pragma once
// How the project starts other programs. Only tools/platform implements it for a real system; tests
// have a recording fake.
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tables/diagnostic.h"

namespace metaldoctor {

struct ChildCommand {
  std::string program;                 ///< a path; PATH is not searched
  std::vector<std::string> arguments;  ///< without the program's own name
  std::optional<std::string> name;     ///< argv[0]; none = program
  /// "NAME=value", in order; none = the caller's environment.
  std::optional<std::vector<std::string>> environment;
};

/// How a child ended.
struct ChildEnd {
  int code = 0;         ///< its exit status; 0 when a signal ended it
  int signal = 0;       ///< the signal that ended it, 0 = it exited
  long process_id = 0;  ///< of the child, to find its records in a journal

  /// The status a shell reports: 128 + signal when one ended it.
  int status() const { return signal != 0 ? 128 + signal : code; }
};

struct CaptureLimits {
  std::size_t output = std::size_t{64} << 20;  ///< bytes of each of the two streams
  std::chrono::milliseconds timeout{60'000};
};

struct CapturedRun {
  ChildEnd end;
  std::string out;
  std::string err;
};

class ProcessRunner {
 public:
  virtual ~ProcessRunner() = default;

  /// Runs `command` with `input` on standard input and collects what it writes. A child that does
  /// not end in time, or writes more than the limit, is killed, and that is the error.
  virtual Result<CapturedRun> capture(const ChildCommand& command, const std::string& input,
                                      const CaptureLimits& limits) = 0;

  /// Runs `command` on the caller's own standard streams until it ends. Signals that another
  /// process sends to the caller meanwhile are passed on; those of the terminal reach the child
  /// anyway.
  virtual Result<ChildEnd> attend(const ChildCommand& command) = 0;
};

}  // namespace metaldoctor
