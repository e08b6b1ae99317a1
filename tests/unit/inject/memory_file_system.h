#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "shim/inject/clock.h"
#include "shim/inject/file_system.h"

namespace metaldoctor::testing {

/// Thrown where the process is killed. Not derived from std::exception: nothing may catch it.
struct Killed {};

/// A file system in memory that counts every change and can be stopped before any of them. It knows
/// what a power cut leaves: names that were not synced into their directory are lost.
class MemoryFileSystem final : public FileSystem {
 public:
  struct Node {
    FileInfo::Kind kind = FileInfo::Kind::file;
    unsigned mode = 0644;
    std::string bytes;
    friend bool operator==(const Node&, const Node&) = default;
  };
  using Tree = std::map<std::string, Node>;

  enum class Stop { never, kill, fail };
  Stop stop = Stop::never;
  int steps_left = 0;       ///< changes until it stops
  bool fails_once = false;  ///< with Stop::fail: later changes succeed again
  int steps = 0;            ///< changes so far
  std::vector<std::string> log;
  Tree live{{"/", {FileInfo::Kind::directory, 0755, {}}}};
  Tree durable = live;

  void add_directory(const std::string& path, unsigned mode = 0755) {
    live[path] = durable[path] = {FileInfo::Kind::directory, mode, {}};
  }
  void add_file(const std::string& path, const std::string& bytes, unsigned mode = 0644) {
    live[path] = durable[path] = {FileInfo::Kind::file, mode, bytes};
  }
  /// What is left after the machine lost power; the process starts anew.
  void power_cut() {
    live = durable;
    std::erase_if(live, [&](const auto& entry) {
      return entry.first != "/" && !live.contains(parent_directory(entry.first));
    });
    durable = live;
  }
  void run_on() { stop = Stop::never; }
  /// Everything outside `hidden`.
  Tree tree_without(const std::string& hidden) const {
    Tree out = live;
    std::erase_if(out, [&](const auto& entry) { return entry.first.starts_with(hidden); });
    return out;
  }

  Result<FileInfo> info(const std::string& path) override {
    FileInfo out;
    const auto found = live.find(path);
    if (found == live.end()) return out;
    out.kind = found->second.kind;
    out.mode = found->second.mode;
    out.owned = true;
    out.size = found->second.bytes.size();
    return out;
  }
  Result<std::string> read(const std::string& path, std::size_t limit) override {
    const auto found = live.find(path);
    if (found == live.end()) return wrong(path, "absent");
    if (found->second.kind != FileInfo::Kind::file) return wrong(path, "not-a-file");
    if (found->second.bytes.size() > limit) return wrong(path, "too-large");
    return found->second.bytes;
  }
  Result<std::string> read_start(const std::string& path, std::size_t size) override {
    auto bytes = read(path, SIZE_MAX);
    if (bytes) bytes->resize(std::min(size, bytes->size()));
    return bytes;
  }
  Result<std::string> real_path(const std::string& path) override {
    if (!live.contains(path)) return wrong(path, "absent");
    return path;
  }
  Result<std::vector<std::string>> list(const std::string& path) override {
    std::vector<std::string> names;
    for (const auto& [each, node] : live) {
      if (each != "/" && parent_directory(each) == path) names.push_back(file_name_of(each));
    }
    return names;
  }

  Result<void> write_new(const std::string& path, std::string_view bytes, unsigned mode) override {
    // Two steps: a kill in between leaves half a file.
    if (auto ok = step("create " + path); !ok) return ok;
    if (live.contains(path)) return wrong(path, "exists");
    if (!is_directory(parent_directory(path))) return wrong(path, "absent");
    live[path] = {FileInfo::Kind::file, mode, std::string(bytes.substr(0, bytes.size() / 2))};
    if (auto ok = step("write " + path); !ok) return ok;
    live[path].bytes = bytes;
    return {};
  }
  Result<void> rename(const std::string& from, const std::string& to) override {
    if (auto ok = step("rename " + to); !ok) return ok;
    const auto found = live.find(from);
    if (found == live.end()) return wrong(from, "absent");
    live[to] = found->second;
    live.erase(from);
    move_below(live, from + '/', to + '/', true);
    move_below(durable, from + '/', to + '/', false);
    return {};
  }
  Result<void> remove(const std::string& path) override {
    if (auto ok = step("remove " + path); !ok) return ok;
    if (live.erase(path) == 0) return wrong(path, "absent");
    return {};
  }
  Result<void> make_directory(const std::string& path, unsigned mode) override {
    if (auto ok = step("mkdir " + path); !ok) return ok;
    if (live.contains(path)) return wrong(path, "exists");
    if (!is_directory(parent_directory(path))) return wrong(path, "absent");
    live[path] = {FileInfo::Kind::directory, mode, {}};
    return {};
  }
  Result<void> remove_directory(const std::string& path) override {
    if (auto ok = step("rmdir " + path); !ok) return ok;
    if (!list(path)->empty()) return wrong(path, "not-empty");
    live.erase(path);
    return {};
  }
  Result<void> sync_directory(const std::string& path) override {
    if (auto ok = step("sync " + path); !ok) return ok;
    if (!is_directory(path)) return wrong(path, "absent");
    std::erase_if(durable, [&](const auto& entry) {
      return entry.first != "/" && parent_directory(entry.first) == path;
    });
    for (const auto& [each, node] : live) {
      if (each != "/" && parent_directory(each) == path) durable[each] = node;
    }
    return {};
  }

 private:
  bool is_directory(const std::string& path) const {
    const auto found = live.find(path);
    return found != live.end() && found->second.kind == FileInfo::Kind::directory;
  }
  static tl::unexpected<Diagnostic> wrong(const std::string& path, const char* code) {
    return metaldoctor::fail(Fault::input, code, path, code);
  }
  /// A directory takes what is in it along; on disk too, once its new name is there.
  static void move_below(Tree& tree, const std::string& from, const std::string& to, bool erase) {
    Tree moved;
    for (const auto& [path, node] : tree) {
      if (path.starts_with(from)) moved[to + path.substr(from.size())] = node;
    }
    if (erase) std::erase_if(tree, [&](const auto& each) { return each.first.starts_with(from); });
    for (const auto& [path, node] : moved) tree[path] = node;
  }
  Result<void> step(std::string what) {
    ++steps;
    log.push_back(what);
    if (stop == Stop::never || steps_left-- > 0) return {};
    if (stop == Stop::kill) throw Killed{};
    if (fails_once) stop = Stop::never;
    return wrong(what, "no-space");
  }
};

class FixedClock final : public Clock {
 public:
  std::int64_t now = 1'796'148'853;  // 2026-12-01T18:14:13Z
  std::int64_t seconds() override { return now++; }
};

}  // namespace metaldoctor::testing
