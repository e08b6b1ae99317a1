// The rules of docs/coding.md that a program can check: which room may include which, and how long
// functions and files are.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_function_lines = 60;
constexpr std::size_t max_file_lines = 520;

/// Lowest room first: a file may include its own room and lower ones.
constexpr std::array<std::string_view, 4> rooms = {"tables", "scanners", "shim", "tools"};

struct SourceFile {
  std::string path;  ///< relative to the source tree
  std::vector<std::string> lines;
};

std::vector<SourceFile> sources() {
  std::vector<SourceFile> files;
  const fs::path root = METALDOCTOR_SOURCE_DIR;
  for (const std::string_view room : rooms) {
    for (const auto& entry : fs::recursive_directory_iterator(root / room)) {
      const auto extension = entry.path().extension();
      if (extension != ".h" && extension != ".cpp") continue;
      SourceFile file{entry.path().lexically_relative(root).generic_string(), {}};
      std::ifstream in(entry.path());
      for (std::string line; std::getline(in, line);) file.lines.push_back(line);
      files.push_back(std::move(file));
    }
  }
  return files;
}

std::size_t room_of(std::string_view path) {
  const std::string_view first = path.substr(0, path.find('/'));
  return static_cast<std::size_t>(std::ranges::find(rooms, first) - rooms.begin());
}

/// The quoted path of an #include line, or empty.
std::string_view included(std::string_view line) {
  constexpr std::string_view start = "#include \"";
  if (!line.starts_with(start)) return {};
  line.remove_prefix(start.size());
  return line.substr(0, line.find('"'));
}

/// "file: what" for every include that goes up.
std::vector<std::string> upward_includes(const std::vector<SourceFile>& files) {
  std::vector<std::string> found;
  for (const SourceFile& file : files) {
    for (const std::string& line : file.lines) {
      const std::string_view target = included(line);
      const std::size_t to = room_of(target);
      if (!target.empty() && to < rooms.size() && to > room_of(file.path)) {
        found.push_back(file.path + " includes " + std::string(target));
      }
    }
  }
  return found;
}

/// Only these may see LLVM; everything else builds without it.
std::vector<std::string> stray_llvm_includes(const std::vector<SourceFile>& files) {
  std::vector<std::string> found;
  for (const SourceFile& file : files) {
    if (file.path.starts_with("scanners/macho/") || file.path.starts_with("scanners/code/"))
      continue;
    for (const std::string& line : file.lines) {
      if (line.starts_with("#include") && line.find("llvm/") != std::string::npos) {
        found.push_back(file.path + ": " + line);
      }
    }
  }
  return found;
}

/// Functions that start in column 0 and end with a '}' in column 0, as the house style writes them.
std::vector<std::string> long_functions(const std::vector<SourceFile>& files) {
  std::vector<std::string> found;
  for (const SourceFile& file : files) {
    std::size_t start = 0;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      const std::string& line = file.lines[i];
      if (line.empty()) continue;
      if (line == "}") {
        if (i - start + 1 > max_function_lines) {
          found.push_back(file.path + ":" + std::to_string(start + 1) + ": " +
                          std::to_string(i - start + 1) + " lines: " + file.lines[start]);
        }
      }
      // A definition starts at the last line in column 0 that is not its closing brace.
      if (line[0] != ' ' && line[0] != '}' && line[0] != '#' && line[0] != '/') start = i;
    }
  }
  return found;
}

TEST(Tree, IncludesGoOneWay) {
  EXPECT_EQ(upward_includes(sources()), std::vector<std::string>{});
}

TEST(Tree, LlvmStaysInItsScanners) {
  EXPECT_EQ(stray_llvm_includes(sources()), std::vector<std::string>{});
}

TEST(Tree, FunctionsAreShort) {
  EXPECT_EQ(long_functions(sources()), std::vector<std::string>{});
}

TEST(Tree, FilesAreShort) {
  for (const SourceFile& file : sources()) {
    EXPECT_LE(file.lines.size(), max_file_lines) << file.path;
  }
}

// The checks themselves can fail.
TEST(Tree, SeesAnUpwardInclude) {
  const std::vector<SourceFile> files = {{"tables/a.h", {"#include \"shim/profile.h\""}}};
  EXPECT_EQ(upward_includes(files).size(), 1u);
}

TEST(Tree, SeesALongFunction) {
  SourceFile file{"tables/a.cpp", {"void f() {"}};
  file.lines.insert(file.lines.end(), max_function_lines, "  g();");
  file.lines.push_back("}");
  EXPECT_EQ(long_functions({file}).size(), 1u);
}

}  // namespace
