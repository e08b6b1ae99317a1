#include "tools/metaldoctor/binary_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>
#include <tuple>

#include "scanners/macho/macho_file.h"
#include "tools/platform/posix_file_system.h"

namespace metaldoctor {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFiles = 1'000'000;
constexpr unsigned kMostThreads = 64;

/// Reads the magic numbers only.
bool is_binary(const std::string& path, std::vector<Diagnostic>& unreadable) {
  PosixFileSystem files;
  const auto start = files.read_start(path, 8);
  if (!start) {
    unreadable.push_back(start.error());
    return false;
  }
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(start->data());
  return container_of({bytes, start->size()}) != Container::unknown;
}

/// Every part that an audit reads, parsed before a second thread can ask for it.
void warm(const Tables& tables) {
  (void)tables.apps();
  (void)tables.queries();
  (void)tables.families();
  (void)tables.feature_sets();
  (void)tables.hazards();
  (void)tables.preflight_rows();
  (void)tables.system_places();
}

/// Hands out the files one by one.
class Pool {
 public:
  Pool(const Tables& tables, const std::string& arch, std::vector<AuditedFile>& files)
      : tables_(tables), arch_(arch), files_(files) {}

  void run(unsigned threads, const std::function<void(std::size_t)>& progress) {
    std::vector<std::thread> workers;  // jthread is not in every libc++ yet
    for (unsigned i = 0; i < threads; ++i) workers.emplace_back([this] { work(); });
    std::unique_lock lock(mutex_);
    while (done_ < files_.size()) {
      changed_.wait_for(lock, std::chrono::milliseconds(200));
      const std::size_t done = done_;
      lock.unlock();
      progress(done);
      lock.lock();
    }
    lock.unlock();
    for (std::thread& worker : workers) worker.join();
  }

 private:
  void work() {
    for (std::size_t i = next_++; i < files_.size(); i = next_++) {
      files_[i].images = audit_file(tables_, files_[i].path, arch_, &files_[i].unread);
      const std::scoped_lock lock(mutex_);
      if (++done_ == files_.size()) changed_.notify_one();
    }
  }

  const Tables& tables_;
  const std::string& arch_;
  std::vector<AuditedFile>& files_;
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t done_ = 0;
};

}  // namespace

Result<BinaryTree> find_binaries(const std::string& path) {
  BinaryTree tree;
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    tree.files.push_back(path);
    return tree;
  }
  tree.is_directory = true;
  const auto options = fs::directory_options::skip_permission_denied;
  fs::recursive_directory_iterator at(path, options, error), end;
  for (; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (at->is_symlink(ignored) || !at->is_regular_file(ignored)) continue;
    if (!is_binary(at->path().string(), tree.unreadable)) {
      ++tree.others;
    } else if (tree.files.size() < kMostFiles) {
      tree.files.push_back(at->path().string());
    } else {
      return fail(Fault::input, "too-large", path,
                  fmt::format("holds more than {} binaries", kMostFiles));
    }
  }
  if (error) return fail(Fault::input, "unreadable", path, error.message());
  tree.others -= std::min(tree.others, tree.unreadable.size());
  std::ranges::sort(tree.files);
  return tree;
}

std::vector<AuditedFile> audit_files(const Tables& tables, const std::vector<std::string>& paths,
                                     const std::string& arch, unsigned threads,
                                     const std::function<void(std::size_t)>& progress) {
  std::vector<AuditedFile> files(paths.size());
  for (std::size_t i = 0; i < paths.size(); ++i) files[i].path = paths[i];
  const auto useful = static_cast<unsigned>(std::min<std::size_t>(paths.size(), kMostThreads));
  threads = std::min(threads == 0 ? std::thread::hardware_concurrency() : threads, useful);
  if (threads <= 1) {
    for (std::size_t i = 0; i < files.size(); ++i) {
      files[i].images = audit_file(tables, files[i].path, arch, &files[i].unread);
      progress(i + 1);
    }
    return files;
  }
  warm(tables);
  Pool(tables, arch, files).run(threads, progress);
  return files;
}

std::size_t remove_copies(std::vector<AuditedFile>& files) {
  std::set<std::tuple<std::string, std::uint64_t, std::string, std::string>> seen;
  std::size_t copies = 0;
  for (AuditedFile& file : files) {
    if (!file.images) continue;
    copies += std::erase_if(*file.images, [&](const AuditedImage& each) {
      const auto& image = each.findings.image;
      return !seen.emplace(image.uuid, image.xxh3, image.arch, image.member).second;
    });
  }
  return copies;
}

}  // namespace metaldoctor
