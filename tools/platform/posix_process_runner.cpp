#include "tools/platform/posix_process_runner.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "tools/platform/descriptor.h"

extern "C" char** environ;

namespace metaldoctor {
namespace {

using Clock = std::chrono::steady_clock;

tl::unexpected<Diagnostic> cannot(const std::string& path, std::string_view what, int error) {
  const bool absent = error == ENOENT || error == EACCES || error == ENOTDIR || error == ENOEXEC;
  return fail(Fault::input, absent ? "cannot-start" : "system", path,
              fmt::format("{}: {}", what, std::strerror(error)));
}

std::vector<char*> pointers(const std::vector<std::string>& texts, const std::string* first) {
  std::vector<char*> out;
  if (first) out.push_back(const_cast<char*>(first->c_str()));
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

class SpawnAttributes {
 public:
  /// `mask` is the child's; signals of `defaults` are at their default action in it.
  SpawnAttributes(const sigset_t& mask, const sigset_t& defaults) {
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_setsigmask(&attributes_, &mask);
    ::posix_spawnattr_setsigdefault(&attributes_, &defaults);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnAttributes() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;

  void redirect(int from, int to) { ::posix_spawn_file_actions_adddup2(&actions_, from, to); }

  Result<pid_t> spawn(const ChildCommand& command) const {
    const std::string& name = command.name ? *command.name : command.program;
    const std::vector<char*> argv = pointers(command.arguments, &name);
    std::vector<char*> envp;
    if (command.environment) envp = pointers(*command.environment, nullptr);
    pid_t pid = 0;
    const int error = ::posix_spawn(&pid, command.program.c_str(), &actions_, &attributes_,
                                    argv.data(), command.environment ? envp.data() : environ);
    if (error != 0) return cannot(command.program, "cannot be started", error);
    return pid;
  }

 private:
  posix_spawnattr_t attributes_;
  posix_spawn_file_actions_t actions_;
};

/// Both ends close on exec and lie above the standard streams, which the child's redirections name.
Result<std::array<Descriptor, 2>> make_pipe() {
  int ends[2];
  if (::pipe(ends) != 0) return cannot("pipe", "cannot be made", errno);
  std::array<Descriptor, 2> low{Descriptor(ends[0]), Descriptor(ends[1])};
  std::array<Descriptor, 2> out;
  for (std::size_t i = 0; i < 2; ++i) {
    out[i].reset(::fcntl(low[i].get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    if (!out[i].is_open()) return cannot("pipe", "cannot be made", errno);
  }
  return out;
}

/// A child that ends before it has read all of its input makes write() raise SIGPIPE.
class PipeSignalBlock {
 public:
  PipeSignalBlock() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    ::sigpending(&pending_before_);
  }
  ~PipeSignalBlock() {
    sigset_t pending;
    ::sigpending(&pending);
    if (sigismember(&pending, SIGPIPE) && !sigismember(&pending_before_, SIGPIPE)) {
      int taken = 0;
      ::sigwait(&pipe_, &taken);
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  PipeSignalBlock(const PipeSignalBlock&) = delete;
  PipeSignalBlock& operator=(const PipeSignalBlock&) = delete;

  const sigset_t& mask_before() const { return before_; }
  const sigset_t& pipe_signal() const { return pipe_; }

 private:
  sigset_t pipe_, before_, pending_before_;
};

ChildEnd ended(pid_t pid, int status) {
  ChildEnd end;
  end.process_id = pid;
  if (WIFSIGNALED(status)) {
    end.signal = WTERMSIG(status);
  } else {
    end.code = WEXITSTATUS(status);
  }
  return end;
}

/// The three pipes of a captured child and how much has passed through them.
class Exchange {
 public:
  Exchange(const std::string& path, std::string_view input, const CaptureLimits& limits)
      : path_(path), input_(input), limits_(limits), deadline_(Clock::now() + limits.timeout) {}

  std::array<Descriptor, 3> ends;  ///< ours: standard input, output, error of the child
  std::array<std::string, 3> text;

  /// Until the child has closed both streams.
  Result<void> pump() {
    if (input_.empty()) ends[0].reset();
    while (ends[1].is_open() || ends[2].is_open()) {
      std::array<pollfd, 3> polled{};
      for (std::size_t i = 0; i < 3; ++i) {
        polled[i] = {ends[i].get(), static_cast<short>(i == 0 ? POLLOUT : POLLIN), 0};
      }
      const int ready = ::poll(polled.data(), polled.size(), milliseconds_left());
      if (ready < 0 && errno != EINTR) return cannot(path_, "cannot be waited for", errno);
      if (ready == 0) return late();
      for (std::size_t i = 0; ready > 0 && i < 3; ++i) {
        if (polled[i].revents == 0) continue;
        if (auto moved = i == 0 ? feed() : drain(i); !moved) return moved;
      }
    }
    return {};
  }

  Result<int> wait(pid_t pid) {
    for (int pause = 1;; pause = std::min(pause * 2, 50)) {
      int status = 0;
      const pid_t got = ::waitpid(pid, &status, WNOHANG);
      if (got == pid) return status;
      if (got < 0 && errno != EINTR) return cannot(path_, "cannot be waited for", errno);
      const int left = milliseconds_left();
      if (left == 0) return tl::unexpected(late().error());
      ::poll(nullptr, 0, std::min(pause, left));
    }
  }

 private:
  int milliseconds_left() const {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now());
    return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000));
  }

  Result<void> late() const {
    return fail(Fault::input, "timed-out", path_,
                fmt::format("did not end within {} ms and was killed", limits_.timeout.count()));
  }

  Result<void> feed() {
    const ssize_t n = ::write(ends[0].get(), input_.data(), input_.size());
    if (n > 0) input_.remove_prefix(static_cast<std::size_t>(n));
    const bool gone = n < 0 && errno != EINTR && errno != EAGAIN;
    if (gone || input_.empty()) ends[0].reset();
    return {};
  }

  Result<void> drain(std::size_t stream) {
    char buffer[1 << 16];
    const ssize_t n = ::read(ends[stream].get(), buffer, sizeof buffer);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return {};
    if (n < 0) return cannot(path_, "its output cannot be read", errno);
    if (n == 0) ends[stream].reset();
    text[stream].append(buffer, static_cast<std::size_t>(n));
    if (text[stream].size() <= limits_.output) return {};
    return fail(Fault::input, "too-large", path_,
                fmt::format("wrote more than {} bytes and was killed", limits_.output));
  }

  const std::string& path_;
  std::string_view input_;
  const CaptureLimits& limits_;
  Clock::time_point deadline_;
};

// Signals for which a supervisor stands in for its child.
constexpr std::array passed_on{SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,
                               SIGUSR1, SIGUSR2, SIGALRM, SIGCONT};
volatile sig_atomic_t attended_child = 0;

/// The terminal sends its signals to the whole foreground group, child included: only what another
/// process sent is passed on.
void pass_on(int signal, siginfo_t* info, void*) {
  const int saved = errno;
  const pid_t child = static_cast<pid_t>(attended_child);
  const bool from_process = info && info->si_pid != 0 && info->si_pid != child;
  if (child > 0 && from_process) ::kill(child, signal);
  errno = saved;
}

/// While it lives, signals to this process go to `attended_child`. Ignored ones stay ignored, as
/// nohup wants it.
class SignalRelay {
 public:
  SignalRelay() {
    sigemptyset(&signals_);
    sigemptyset(&none_);
    for (const int signal : passed_on) sigaddset(&signals_, signal);
    ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
    for (std::size_t i = 0; i < passed_on.size(); ++i) {
      ::sigaction(passed_on[i], nullptr, &old_[i]);
      struct sigaction action{};
      action.sa_sigaction = pass_on;
      action.sa_flags = SA_SIGINFO | SA_RESTART;
      action.sa_mask = signals_;
      if (!is_ignored(old_[i])) ::sigaction(passed_on[i], &action, nullptr);
    }
  }
  ~SignalRelay() {
    ::pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    attended_child = 0;
    for (std::size_t i = 0; i < passed_on.size(); ++i) {
      ::sigaction(passed_on[i], &old_[i], nullptr);
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SignalRelay(const SignalRelay&) = delete;
  SignalRelay& operator=(const SignalRelay&) = delete;

  void start(pid_t child) {
    attended_child = child;
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  void stop() { ::pthread_sigmask(SIG_BLOCK, &signals_, nullptr); }

  const sigset_t& mask_before() const { return before_; }
  const sigset_t& no_signals() const { return none_; }

 private:
  static bool is_ignored(const struct sigaction& action) {
    return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_IGN;
  }

  sigset_t signals_, none_, before_;
  std::array<struct sigaction, passed_on.size()> old_{};
};

}  // namespace

Result<CapturedRun> PosixProcessRunner::capture(const ChildCommand& command,
                                                const std::string& input,
                                                const CaptureLimits& limits) {
  const PipeSignalBlock block;
  Exchange exchange(command.program, input, limits);
  SpawnAttributes attributes(block.mask_before(), block.pipe_signal());
  std::array<Descriptor, 3> theirs;
  for (std::size_t i = 0; i < 3; ++i) {
    auto ends = make_pipe();
    if (!ends) return tl::unexpected(ends.error());
    theirs[i] = std::move((*ends)[i == 0 ? 0 : 1]);
    exchange.ends[i] = std::move((*ends)[i == 0 ? 1 : 0]);
    ::fcntl(exchange.ends[i].get(), F_SETFL, O_NONBLOCK);
    attributes.redirect(theirs[i].get(), static_cast<int>(i));
  }
  const auto pid = attributes.spawn(command);
  if (!pid) return tl::unexpected(pid.error());
  for (Descriptor& end : theirs) end.reset();
  const auto pumped = exchange.pump();
  auto status = pumped ? exchange.wait(*pid) : Result<int>(tl::unexpected(pumped.error()));
  if (!status) {
    ::kill(*pid, SIGKILL);
    while (::waitpid(*pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    return tl::unexpected(status.error());
  }
  return CapturedRun{ended(*pid, *status), std::move(exchange.text[1]),
                     std::move(exchange.text[2])};
}

Result<ChildEnd> PosixProcessRunner::attend(const ChildCommand& command) {
  SignalRelay relay;
  const SpawnAttributes attributes(relay.mask_before(), relay.no_signals());
  const auto pid = attributes.spawn(command);
  if (!pid) return tl::unexpected(pid.error());
  relay.start(*pid);
  // The child stays unreaped until signals are held back: its number must not be reused under us.
  siginfo_t info;
  while (::waitid(P_PID, static_cast<id_t>(*pid), &info, WEXITED | WNOWAIT) != 0) {
    if (errno != EINTR) return cannot(command.program, "cannot be waited for", errno);
  }
  relay.stop();
  int status = 0;
  while (::waitpid(*pid, &status, 0) < 0) {
    if (errno != EINTR) return cannot(command.program, "cannot be waited for", errno);
  }
  return ended(*pid, status);
}

}  // namespace metaldoctor
