#include "shim/inject/resolve.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "shim/inject/preflight.h"

namespace metaldoctor {
namespace {

constexpr int kMostSteps = 8;
constexpr std::size_t kLongestInterpreterLine = 512;  // xnu IMG_SHSIZE
constexpr unsigned kAnyExecuteBit = 0111;

Result<std::string> find_program(FileSystem& files, const std::string& name,
                                 const std::string& search_path) {
  if (name.find('/') != std::string::npos) return name;
  for (std::size_t begin = 0; begin <= search_path.size() && !name.empty();) {
    const std::size_t end = std::min(search_path.find(':', begin), search_path.size());
    std::string directory = search_path.substr(begin, end - begin);
    if (directory.empty()) directory = ".";
    const std::string path = directory + '/' + name;
    const auto real = files.real_path(path);
    const auto info = real ? files.info(*real) : Result<FileInfo>(FileInfo{});
    if (info && info->is_file() && (info->mode & kAnyExecuteBit)) return path;
    begin = end + 1;
  }
  return fail(Fault::input, "cannot-start", name, "no program of that name is in PATH");
}

/// The words of a "#!" line, none for any other file. xnu splits them at blanks.
std::vector<std::string> interpreter_words(std::string_view start) {
  std::vector<std::string> words;
  if (!start.starts_with("#!")) return words;
  start = start.substr(
      2, start.find('\n') == std::string_view::npos ? start.size() : start.find('\n') - 2);
  for (std::size_t at = 0; at < start.size();) {
    const std::size_t begin = start.find_first_not_of(" \t\r", at);
    if (begin == std::string_view::npos) break;
    const std::size_t end = std::min(start.find_first_of(" \t\r", begin), start.size());
    words.emplace_back(start.substr(begin, end - begin));
    at = end;
  }
  return words;
}

const Launcher* launcher_at(const Tables& tables, const std::string& path,
                            const std::string& real) {
  if (!is_system_path(tables, real) && !is_system_path(tables, path)) return nullptr;
  // A link of another name decides by where it was called: /usr/bin/python3, /bin/sh.
  for (const std::string& name : {file_name_of(path), file_name_of(real)}) {
    const auto& all = tables.launchers();
    const auto found = std::ranges::find(all, name, &Launcher::name);
    if (found != all.end()) return &*found;
  }
  return nullptr;
}

/// Resolves one command line step by step; `argv` shrinks and grows with each.
class Resolver {
 public:
  Resolver(const Tables& tables, FileSystem& files, std::vector<std::string> argv,
           const std::string& search_path)
      : tables_(tables), files_(files), argv_(std::move(argv)), search_path_(search_path) {}

  Result<ResolvedCommand> resolve() {
    for (int step = 0; step < kMostSteps; ++step) {
      auto program = find_program(files_, argv_[0], search_path_);
      if (!program) return tl::unexpected(program.error());
      auto real = files_.real_path(*program);
      if (!real) return tl::unexpected(real.error());
      out_.program = *program;
      out_.real_path = *real;
      const Launcher* launcher = launcher_at(tables_, *program, *real);
      if (launcher && launcher->takes_assignments && skip_assignments(*launcher)) continue;
      if (launcher) out_.advice.push_back(launcher->advice);
      const auto words = script_words(*real);
      if (!words) return tl::unexpected(words.error());
      if (words->empty()) return finish();
      take_script(*words);
    }
    return fail(Fault::input, "cannot-start", argv_[0],
                "is a script whose interpreter is a script, and so on without end");
  }

 private:
  Result<std::vector<std::string>> script_words(const std::string& real) {
    const auto start = files_.read_start(real, kLongestInterpreterLine);
    if (!start) return tl::unexpected(start.error());
    return interpreter_words(*start);
  }

  /// env NAME=VALUE... PROGRAM ARGUMENT...; false for anything with options.
  bool skip_assignments(const Launcher& launcher) {
    std::size_t next = 1;
    if (next < argv_.size() && argv_[next] == "--") ++next;
    std::vector<std::string> made;
    while (next < argv_.size() && argv_[next].find('=') != std::string::npos &&
           argv_[next].front() != '=' && argv_[next].front() != '-') {
      made.push_back(argv_[next++]);
    }
    if (next >= argv_.size() || argv_[next].starts_with('-')) return false;
    out_.steps.push_back(fmt::format("{}: {}", out_.real_path, launcher.advice));
    out_.assignments.insert(out_.assignments.end(), made.begin(), made.end());
    argv_.erase(argv_.begin(), argv_.begin() + static_cast<std::ptrdiff_t>(next));
    return true;
  }

  void take_script(std::vector<std::string> words) {
    out_.steps.push_back(fmt::format("{} is a script of {}", out_.program, words[0]));
    // `env -S` splits its argument; the words are split already.
    if (words.size() > 2 && words[1] == "-S" && file_name_of(words[0]) == "env") {
      words.erase(words.begin() + 1);
    }
    words.push_back(out_.program);
    words.insert(words.end(), argv_.begin() + 1, argv_.end());
    argv_ = std::move(words);
  }

  ResolvedCommand finish() {
    out_.name = argv_[0];
    out_.arguments.assign(argv_.begin() + 1, argv_.end());
    return std::move(out_);
  }

  const Tables& tables_;
  FileSystem& files_;
  std::vector<std::string> argv_;
  const std::string& search_path_;
  ResolvedCommand out_;
};

}  // namespace

Result<ResolvedCommand> resolve_command(const Tables& tables, FileSystem& files,
                                        const std::vector<std::string>& command,
                                        const std::string& search_path) {
  return Resolver(tables, files, command, search_path).resolve();
}

}  // namespace metaldoctor
