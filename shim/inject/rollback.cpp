// The way back of a ChangeSet.
#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "shim/inject/change_files.h"
#include "shim/inject/change_set.h"
#include "shim/inject/private_directory.h"

namespace metaldoctor {
namespace {

/// What prepare() writes: the receipt and the numbered old bytes.
bool is_name_of_start(const std::string& name) {
  if (name == kReceiptName || name == staged(std::string(kReceiptName))) return true;
  const std::size_t digits = name.find_first_not_of("0123456789");
  return digits != 0 && digits != std::string::npos && name.substr(digits) == ".before";
}

}  // namespace

/// Looks at every file before one is touched.
Result<void> ChangeSet::check_rollback(const Receipt& receipt, bool force) {
  for (const ReceiptFile& file : receipt.files) {
    const auto now = state_of(file.path);
    if (!now) return tl::unexpected(now.error());
    if (*now == file.before) continue;
    if (*now != file.after && !force) {
      return fail(Fault::refused, "changed-since", file.path,
                  now->exists ? "was changed after metaldoctor wrote it"
                              : "was removed after metaldoctor wrote it",
                  "--force restores it all the same, and keeps its bytes beside the receipt");
    }
    if (!file.before.exists) continue;
    const auto backup = files_.read(directory_of(receipt) + '/' + file.backup, kLargestChangedFile);
    if (!backup) return tl::unexpected(backup.error());
    if (hash_of(*backup) != file.before.sha256) {
      return fail(Fault::refused, "receipt-edited", file.path,
                  "the old bytes that were kept of it were changed");
    }
  }
  return {};
}

Result<void> ChangeSet::keep_edited(const Receipt& receipt, std::size_t index) {
  const ReceiptFile& file = receipt.files[index];
  const auto now = state_of(file.path);
  if (!now) return tl::unexpected(now.error());
  if (!now->exists || *now == file.before || *now == file.after) return {};
  const auto bytes = files_.read(file.path, kLargestChangedFile);
  if (!bytes) return tl::unexpected(bytes.error());
  const std::string kept = fmt::format("{}/{}.edited", directory_of(receipt), index);
  return replace_file(files_, kept, staged(kept), *bytes, kPrivateFile);
}

/// Writes all old bytes out first, so that a full disk stops it before the first change.
Result<void> ChangeSet::restore_files(const Receipt& receipt) {
  std::vector<const ReceiptFile*> changed;
  for (const ReceiptFile& file : receipt.files) {
    if (auto removed = remove_if_there(files_, staged(file.path, receipt.id)); !removed)
      return removed;
    const auto now = state_of(file.path);
    if (!now) return tl::unexpected(now.error());
    if (*now != file.before) changed.push_back(&file);
  }
  Result<void> done;
  for (const ReceiptFile* file : changed) {
    if (!done || !file->before.exists) continue;
    const auto bytes = files_.read(directory_of(receipt) + '/' + file->backup, kLargestChangedFile);
    done = bytes ? files_.write_new(staged(file->path, receipt.id), *bytes, file->before.mode)
                 : Result<void>(tl::unexpected(bytes.error()));
  }
  if (!done) {
    for (const ReceiptFile* file : changed)
      (void)remove_if_there(files_, staged(file->path, receipt.id));
    return done;
  }
  for (const ReceiptFile* file : changed | std::views::reverse) {
    done = file->before.exists ? files_.rename(staged(file->path, receipt.id), file->path)
                               : remove_if_there(files_, file->path);
    if (done) done = files_.sync_directory(parent_directory(file->path));
    if (!done) return done;
  }
  return done;
}

/// Those that apply made and that nobody else uses.
Result<void> ChangeSet::remove_directories(const Receipt& receipt) {
  for (const std::string& directory : receipt.directories | std::views::reverse) {
    const auto info = files_.info(directory);
    if (!info) return tl::unexpected(info.error());
    if (!info->is_directory()) continue;
    const auto names = files_.list(directory);
    if (!names) return tl::unexpected(names.error());
    if (!names->empty()) continue;
    auto removed = files_.remove_directory(directory);
    if (removed) removed = files_.sync_directory(parent_directory(directory));
    if (!removed) return removed;
  }
  return {};
}

/// The old bytes are of no use any more; the receipt stays as the record.
void ChangeSet::forget(const Receipt& receipt) {
  for (const ReceiptFile& file : receipt.files) {
    if (!file.backup.empty()) {
      (void)remove_if_there(files_, directory_of(receipt) + '/' + file.backup);
    }
  }
}

/// Of a receipt that nothing depends on any more.
Result<void> ChangeSet::discard(const Receipt& receipt) {
  const std::string whole = directory_of(receipt);
  const auto info = files_.info(whole);
  if (!info) return tl::unexpected(info.error());
  if (info->exists()) {
    auto renamed = files_.rename(whole, whole + std::string(kRemains));
    if (renamed) renamed = files_.sync_directory(directory_);
    if (!renamed) return renamed;
  }
  return remove_remains(receipt.id + std::string(kRemains));
}

/// A directory with anything in it that no interrupted start leaves is not touched.
Result<void> ChangeSet::remove_remains(const std::string& name) {
  const std::string directory = directory_ + '/' + name;
  const auto info = files_.info(directory);
  if (!info) return tl::unexpected(info.error());
  if (!info->is_directory()) return {};
  const auto names = files_.list(directory);
  if (!names) return tl::unexpected(names.error());
  if (!std::ranges::all_of(*names, is_name_of_start)) return {};
  for (const std::string& each : *names) {
    if (auto removed = files_.remove(directory + '/' + each); !removed) return removed;
  }
  auto removed = files_.remove_directory(directory);
  return removed ? files_.sync_directory(directory_) : removed;
}

Result<void> ChangeSet::clear_remains() {
  const auto info = files_.info(directory_);
  if (!info) return tl::unexpected(info.error());
  if (!info->exists()) return {};
  const auto names = files_.list(directory_);
  if (!names) return tl::unexpected(names.error());
  for (const std::string& name : *names) {
    if (!name.ends_with(kRemains)) continue;
    if (auto removed = remove_remains(name); !removed) return removed;
  }
  return {};
}

Result<Receipt> ChangeSet::rollback(Receipt receipt, bool force) {
  if (receipt.state == Receipt::State::rolled_back) {
    forget(receipt);
    return receipt;
  }
  if (auto safe = check_rollback(receipt, force); !safe) {
    return tl::unexpected(safe.error());
  }
  receipt.state = Receipt::State::rolling_back;
  Result<void> done = save(receipt);
  for (std::size_t i = 0; done && i < receipt.files.size(); ++i) done = keep_edited(receipt, i);
  if (done) done = restore_files(receipt);
  if (done) done = remove_directories(receipt);
  receipt.state = Receipt::State::rolled_back;
  if (done) done = save(receipt);
  if (!done) return tl::unexpected(done.error());
  forget(receipt);
  return receipt;
}

}  // namespace metaldoctor
