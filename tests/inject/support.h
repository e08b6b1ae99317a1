#pragma once
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tables/document.h"
#include "tools/platform/posix_process_runner.h"

namespace metaldoctor::testing {

namespace fs = std::filesystem;

/// A home directory of its own, removed at the end, and the tool started in it.
class Home {
 public:
  Home() {
    std::string pattern = (fs::temp_directory_path() / "metaldoctor-test-XXXXXX").string();
    path_ = fs::canonical(::mkdtemp(pattern.data()));
    write("profile.json", kProfile);
  }
  ~Home() {
    std::error_code ignored;
    fs::permissions(path_, fs::perms::owner_all, ignored);
    fs::remove_all(path_, ignored);
  }
  Home(const Home&) = delete;
  Home& operator=(const Home&) = delete;

  std::string path(const std::string& name) const { return (path_ / name).string(); }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << text;
  }
  std::string read(const std::string& name) const {
    std::ifstream in(path_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  CapturedRun tool(std::vector<std::string> arguments, const std::string& input = {}) const {
    ChildCommand command;
    command.program = METALDOCTOR_TOOL;
    command.arguments = std::move(arguments);
    command.environment = {{"HOME=" + path_.string(), "PATH=/usr/bin:/bin", "LC_ALL=C"}};
    auto run = PosixProcessRunner().capture(command, input, {});
    return run ? *run : CapturedRun{{.code = -1}, "", run.error().what};
  }

  /// Every file below the home with its bytes and mode, without what lies below `hidden`.
  std::map<std::string, std::string> tree(const std::string& hidden = ".local") const {
    std::map<std::string, std::string> out;
    for (const auto& entry : fs::recursive_directory_iterator(path_)) {
      const std::string name = entry.path().lexically_relative(path_).generic_string();
      if (name.starts_with(hidden)) continue;
      const auto mode = static_cast<unsigned>(fs::status(entry).permissions());
      out[name] = std::to_string(mode) + ' ' + (entry.is_regular_file() ? read(name) : "/");
    }
    return out;
  }

  static constexpr const char* kProfile = R"({
    "schema": "metaldoctor.profile/1",
    "bound": {"chip": "M1 Ultra", "os": "26.5", "table_edition": "2026-12-01"},
    "changes": [
      {"query": "supportsFamily:", "arguments": [1006], "answer": true, "reason": "r",
       "evidence": "documented", "opens": []},
      {"query": "supportsFamily:", "arguments": [1007], "answer": true, "reason": "r",
       "evidence": "documented", "opens": []}
    ],
    "left_alone": [], "callers": "all", "scope": "process", "accepted_hazards": []
  })";

 private:
  fs::path path_;
};

}  // namespace metaldoctor::testing
