// metaldoctor-sim: runs Mach-O code against a simulated Metal. A request document in, a result
// document out; a program of its own because the engine it links is GPL-2.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <list>

#include "scanners/simulator/protocol.h"
#include "tools/metaldoctor/files.h"

namespace {

using namespace metaldoctor;
namespace fs = std::filesystem;

/// What metaldoctor's own exit statuses say: usage 2, input 3, refused 4, a bug 70.
int exit_status(Fault fault) {
  switch (fault) {
    case Fault::usage:
      return 2;
    case Fault::input:
      return 3;
    case Fault::refused:
      return 4;
    case Fault::bug:
      return 70;
  }
  return 70;
}

int report(const Diagnostic& error) {
  const std::string line =
      fmt::format("metaldoctor-sim: {}: {} [{}]\n", error.where, error.what, error.code);
  std::fputs(line.c_str(), stderr);  // fmt::print throws where nothing can be written
  return exit_status(error.fault);
}

/// Files stay mapped for the whole run: the simulator shares their pages.
class MappedFiles {
 public:
  ~MappedFiles() {
    for (const Bytes& bytes : files_) munmap(const_cast<std::uint8_t*>(bytes.data()), bytes.size());
  }
  Result<Bytes> map(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat info{};
    if (file < 0 || fstat(file, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0) {
      if (file >= 0) close(file);
      return fail(Fault::input, "file-unreadable", path, "is no file that can be read");
    }
    const auto size = static_cast<std::size_t>(info.st_size);
    void* at = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (at == MAP_FAILED) return fail(Fault::input, "file-unreadable", path, "cannot be mapped");
    return files_.emplace_back(static_cast<const std::uint8_t*>(at), size);
  }

 private:
  std::list<Bytes> files_;
};

/// Adds the libraries that images link and that lie beside them, until nothing more is found.
Result<void> add_libraries(SimRequest& request, MappedFiles& files) {
  constexpr std::size_t most = 64;
  for (bool found = true; found && request.images.size() < most;) {
    found = false;
    const auto missing = missing_libraries(request);
    if (!missing) return tl::unexpected(missing.error());
    for (const std::string& leaf : *missing) {
      const auto with_it = std::ranges::find_if(request.images, [&](const SimImage& image) {
        return fs::is_regular_file(fs::path(image.path).parent_path() / leaf);
      });
      if (with_it == request.images.end()) continue;
      const std::string path = (fs::path(with_it->path).parent_path() / leaf).string();
      auto bytes = files.map(path);
      if (!bytes) return tl::unexpected(bytes.error());
      request.images.push_back({path, *bytes});
      found = true;
    }
  }
  return {};
}

Result<SimResult> run(const std::string& text, const std::string& name, MappedFiles& files) {
  auto tables = Tables::embedded();
  if (!tables) return tl::unexpected(tables.error());
  auto document = read_sim_request(*tables, text, name);
  if (!document) return tl::unexpected(document.error());
  SimRequest& request = document->request;
  for (std::size_t i = 0; i < request.images.size(); ++i) {
    if (!request.images[i].bytes.empty()) continue;
    auto bytes = files.map(document->image_files[i]);
    if (!bytes) return tl::unexpected(bytes.error());
    request.images[i].bytes = *bytes;
  }
  if (auto added = add_libraries(request, files); !added) return tl::unexpected(added.error());
  const SimHost host{[] {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
  }};
  return simulate(*tables, request, host);
}

/// The engine is not ours: whatever it does, the machine keeps its memory.
void limit_memory() {
  constexpr rlim_t most = rlim_t{8} << 30;
  const rlimit limit{most, most};
  setrlimit(RLIMIT_AS, &limit);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Runs Mach-O code against a simulated Metal device."};
  std::string input = "-", output = "-";
  bool compact = false;
  app.add_option("request", input,
                 "request document (sim-request.schema.json); - or none = standard input. Paths "
                 "in it are relative to the current directory");
  app.footer(
      "Exit status: 0 every run has a trace (a run that stopped says why in it), 2 usage, "
      "3 input unreadable, 70 a fault of ours");
  app.add_option("-o,--output", output, "where the result goes; - = stdout");
  app.add_flag("--compact", compact, "one line of JSON");
  app.set_version_flag("--version", METALDOCTOR_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  limit_memory();
  const auto text = read_file(input);
  if (!text) return report(text.error());
  MappedFiles files;
  std::string json;
  try {
    const auto result = run(*text, input == "-" ? "stdin" : input, files);
    if (!result) return report(result.error());
    json = to_json(*result).dump(compact ? -1 : 2) + "\n";
  } catch (const std::bad_alloc&) {
    return report({Fault::input,
                   "simulator-memory",
                   input,
                   "the run needs more memory than it may have",
                   {}});
  }
  if (output == "-") {
    std::cout << json << std::flush;
    return std::cout ? 0
                     : report({Fault::input, "file-unwritable", "stdout", "cannot be written", {}});
  }
  std::ofstream out(output, std::ios::binary);
  out << json << std::flush;
  return out ? 0 : report({Fault::input, "file-unwritable", output, "cannot be written", {}});
}
