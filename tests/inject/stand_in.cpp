// Stands in for a program that was injected: stand_in WORD... does what the words say, in order.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tables/wire_format.h"

extern "C" char** environ;

namespace {

using metaldoctor::wire::Line;

void write_line(Line line) {
  const char* path = std::getenv("METALDOCTOR_JOURNAL");
  if (!path) return;
  const int fd = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  const std::size_t size = line.finish();
  if (fd >= 0 && ::write(fd, line.data(), size) != static_cast<ssize_t>(size)) std::abort();
  ::close(fd);
}

std::uint64_t pid() {
  return static_cast<std::uint64_t>(::getpid());
}

void load() {
  write_line(Line(metaldoctor::wire::kHeader).text("shim").text("0.1.0"));
  write_line(Line("process").number(pid()).text("/opt/bin/server"));
  write_line(Line("profile")
                 .number(pid())
                 .text("section")
                 .text("active")
                 .number(2)
                 .text("host")
                 .text("all")
                 .text("process"));
}

void install(const char* state, const char* reason) {
  write_line(Line("install")
                 .number(pid())
                 .text("AppleParavirtDevice")
                 .text(state)
                 .number(1)
                 .text(reason)
                 .text("supportsFamily:"));
}

void ask(std::int64_t family, bool stock, bool given) {
  write_line(Line("asked")
                 .number(pid())
                 .text("AppleParavirtDevice")
                 .text("supportsFamily:")
                 .integer(family)
                 .truth(stock)
                 .truth(given)
                 .text("/opt/lib/libggml-metal.dylib")
                 .number(0x6854));
}

int run_child(char* self, const char* word) {
  char* const argv[] = {self, const_cast<char*>(word), nullptr};
  char* const hold[] = {self, const_cast<char*>("load"), const_cast<char*>("installed"), nullptr};
  pid_t child = 0;
  if (::posix_spawn(&child, self, nullptr, nullptr, word ? argv : hold, environ) != 0) return 1;
  int status = 0;
  return ::waitpid(child, &status, 0) == child ? 0 : 1;
}

[[noreturn]] void ended(int) {
  ::_exit(42);
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "load") load();
    if (word == "waiting") install("waiting", "for a device");
    if (word == "installed") install("installed", "");
    if (word == "refused") install("refused", "the device class has no such method");
    if (word == "ask") {
      ask(1007, false, true);
      ask(5001, false, false);
    }
    if (word == "child") run_child(argv[0], nullptr);
    if (word == "library") std::puts(std::getenv("DYLD_INSERT_LIBRARIES"));
    if (word == "journal") std::puts(std::getenv("METALDOCTOR_JOURNAL"));
    if (word == "input") {
      for (int c = std::getchar(); c != EOF; c = std::getchar()) std::putchar(c);
    }
    if (word == "link") {  // puts a link where the journal was to be
      (void)::unlink(std::getenv("METALDOCTOR_JOURNAL"));
      if (::symlink("/etc/passwd", std::getenv("METALDOCTOR_JOURNAL")) != 0) return 99;
    }
    if (word == "garbage") {
      const char* path = std::getenv("METALDOCTOR_JOURNAL");
      std::FILE* file = std::fopen(path, "w");
      std::fputs("not a journal\n", file);
      std::fclose(file);
    }
    if (word == "signal-parent") {  // TERM to the tool; it must come back to this process
      ::signal(SIGTERM, ended);
      const std::string kill = "kill -TERM " + std::to_string(::getppid());
      if (std::system(kill.c_str()) != 0) return 97;
      ::sleep(10);
      return 98;
    }
    if (word == "abort") std::abort();
    if (word.starts_with("exit=")) return std::atoi(word.c_str() + 5);
    if (word.starts_with("kill=")) {
      const int number = std::atoi(word.c_str() + 5);
      ::signal(number, SIG_DFL);  // a sanitizer's handler would exit instead
      ::kill(::getpid(), number);
    }
    std::fflush(stdout);
  }
  return 0;
}
