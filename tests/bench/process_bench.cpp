// Times whole processes against a reference process, interleaved within one run so that load on
// the machine hits both alike, and prints medians, their ratio, and peak memory.
//   process_bench ROUNDS REFERENCE -- NAME LIMIT COMMAND... [-- NAME LIMIT COMMAND...]...
// LIMIT is the ratio that is aimed at (0 = none). REFERENCE is one shell word list, split at
// spaces.
#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

extern char** environ;

namespace {

struct Subject {
  std::string name;
  double limit = 0;
  std::vector<std::string> command;
  std::vector<double> milliseconds;
  long peak_kilobytes = 0;
  int status = 0;
};

void run_once(Subject& subject) {
  std::vector<char*> argv;
  for (std::string& word : subject.command) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  const auto begin = std::chrono::steady_clock::now();
  pid_t child = 0;
  if (posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ) != 0) {
    fmt::print(stderr, "cannot run {}\n", argv[0]);
    std::exit(2);
  }
  rusage usage{};
  wait4(child, &subject.status, 0, &usage);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  posix_spawn_file_actions_destroy(&actions);
  subject.milliseconds.push_back(took.count());
  subject.peak_kilobytes = std::max(subject.peak_kilobytes, usage.ru_maxrss);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

std::vector<Subject> subjects_of(int argc, char** argv) {
  std::vector<Subject> subjects;
  for (int i = 3; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--" && i + 2 < argc) {
      subjects.push_back({argv[i + 1], std::atof(argv[i + 2]), {}, {}, 0, 0});
      i += 2;
    } else if (!subjects.empty()) {
      subjects.back().command.push_back(word);
    }
  }
  return subjects;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    fmt::print(stderr, "process_bench ROUNDS REFERENCE -- NAME LIMIT COMMAND...\n");
    return 2;
  }
  const int rounds = std::max(1, std::atoi(argv[1]));
  Subject reference{argv[2], 0, {}, {}, 0, 0};
  std::istringstream words(argv[2]);
  for (std::string word; words >> word;) reference.command.push_back(word);
  std::vector<Subject> subjects = subjects_of(argc, argv);
  for (int round = -1; round < rounds; ++round) {
    run_once(reference);
    for (Subject& subject : subjects) run_once(subject);
    if (round >= 0) continue;
    reference.milliseconds.clear();  // the first round only warms the page cache
    for (Subject& subject : subjects) subject.milliseconds.clear();
  }
  const double base = median(reference.milliseconds);
  fmt::print("{:<34} {:>10} {:>8} {:>8} {:>9}\n", "", "median ms", "ratio", "aim", "peak MB");
  fmt::print("{:<34} {:>10.2f} {:>8.2f} {:>8} {:>9.1f}\n", reference.name, base, 1.0, "",
             static_cast<double>(reference.peak_kilobytes) / 1024);
  for (const Subject& subject : subjects) {
    const double ms = median(subject.milliseconds);
    fmt::print("{:<34} {:>10.2f} {:>8.3f} {:>8} {:>9.1f}\n", subject.name, ms, ms / base,
               subject.limit > 0 ? fmt::format("{:.3f}", subject.limit) : "",
               static_cast<double>(subject.peak_kilobytes) / 1024);
  }
  return 0;
}
