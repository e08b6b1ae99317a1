#include "shim/inject/change_set.h"

#include <fmt/format.h>

#include <algorithm>

#include "scanners/macho/sha256.h"
#include "shim/inject/change_files.h"
#include "shim/inject/plist.h"
#include "shim/inject/private_directory.h"

namespace metaldoctor {
namespace {

constexpr std::size_t kLargestReceipt = std::size_t{1} << 20;
constexpr unsigned kUsualDirectory = 0755;

std::string text_of(const Receipt& receipt) {
  return to_json(receipt).dump(2) + "\n";
}

/// "-com.example.agent"
std::string id_suffix(const std::string& subject) {
  std::string out = "-";
  for (const char c : file_name_of(subject).substr(0, 60)) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-';
    out += plain ? c : '_';
  }
  return out;
}

/// "20261201T181413Z-com.example.agent": sorts by time.
std::string id_of(const std::string& made, const std::string& subject, std::size_t attempt) {
  std::string id;
  for (const char c : made) {
    if (c != '-' && c != ':') id += c;
  }
  id += id_suffix(subject);
  return attempt == 0 ? id : fmt::format("{}-{}", id, attempt);
}

/// Whether the directory's name lets a receipt that cannot be read be one of `subject`.
bool may_be_of(const std::string& id, const std::string& subject) {
  return id.find(id_suffix(subject)) != std::string::npos;
}

}  // namespace

std::string hash_of(std::string_view bytes) {
  return hex(sha256({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}));
}

std::string staged(const std::string& path) {
  return path + ".metaldoctor-new";
}

std::string staged(const std::string& path, const std::string& id) {
  return fmt::format("{}.metaldoctor-{}", path, hash_of(id).substr(0, 12));
}

Result<void> remove_if_there(FileSystem& files, const std::string& path) {
  const auto info = files.info(path);
  if (!info) return tl::unexpected(info.error());
  return info->exists() ? files.remove(path) : Result<void>{};
}

std::string ChangeSet::path_of(const Receipt& receipt) const {
  return fmt::format("{}/{}", directory_of(receipt), kReceiptName);
}

Result<ReceiptFile::State> ChangeSet::state_of(const std::string& path) {
  const auto info = files_.info(path);
  if (!info) return tl::unexpected(info.error());
  if (!info->exists()) return ReceiptFile::State{};
  if (!info->is_file() || !info->owned) {
    return fail(Fault::refused, "not-your-file", path,
                info->is_file() ? "belongs to another user"
                                : "is a link, a directory or a device, expected a file",
                "give the file itself");
  }
  const auto bytes = files_.read(path, kLargestChangedFile);
  if (!bytes) return tl::unexpected(bytes.error());
  return ReceiptFile::State{true, hash_of(*bytes), info->mode};
}

Result<Receipt> ChangeSet::plan(const ChangePlan& plan) {
  Receipt receipt;
  receipt.made = utc_text(clock_.seconds());
  receipt.action = plan.action;
  receipt.subject = plan.subject;
  receipt.before = plan.before;
  receipt.after = plan.after;
  receipt.undo_before = plan.undo_before;
  receipt.undo_after = plan.undo_after;
  for (const FileChange& change : plan.files) {
    const bool one_line = change.path.find_first_of("\n\t") == std::string::npos;
    if (!is_plain_absolute(change.path) || !fits_plist(change.path) || !one_line) {
      return fail(Fault::refused, "bad-path", change.path,
                  "expected an absolute path in UTF-8 without control characters");
    }
    const auto before = state_of(change.path);
    if (!before) return tl::unexpected(before.error());
    ReceiptFile file{change.path, *before, {true, hash_of(change.bytes), change.mode}, {}};
    if (before->exists) file.backup = fmt::format("{}.before", receipt.files.size());
    receipt.files.push_back(std::move(file));
    const auto missing = missing_directories(files_, parent_directory(change.path));
    if (!missing) return tl::unexpected(missing.error());
    for (const std::string& each : *missing) {
      const bool is_new = std::ranges::find(receipt.directories, each) == receipt.directories.end();
      if (is_new) receipt.directories.push_back(each);
    }
  }
  return receipt;
}

Result<void> ChangeSet::save(const Receipt& receipt) {
  const std::string path = path_of(receipt);
  return replace_file(files_, path, staged(path), text_of(receipt), kPrivateFile);
}

/// Old bytes, then the receipt; the first change may come after this only.
Result<void> ChangeSet::prepare(const Receipt& receipt) {
  const std::string whole = directory_of(receipt), directory = whole + std::string(kRemains);
  if (auto made = files_.make_directory(directory, kPrivateDirectory); !made) return made;
  for (const ReceiptFile& file : receipt.files) {
    if (file.backup.empty()) continue;
    const auto bytes = files_.read(file.path, kLargestChangedFile);
    if (!bytes) return tl::unexpected(bytes.error());
    if (hash_of(*bytes) != file.before.sha256) {
      return fail(Fault::input, "changed-meanwhile", file.path, "was changed while it was read");
    }
    auto written = files_.write_new(directory + '/' + file.backup, *bytes, kPrivateFile);
    if (!written) return written;
  }
  auto done = files_.write_new(fmt::format("{}/{}", directory, kReceiptName), text_of(receipt),
                               kPrivateFile);
  if (done) done = files_.sync_directory(directory);
  if (done) done = files_.rename(directory, whole);
  return done ? files_.sync_directory(directory_) : done;
}

Result<void> ChangeSet::carry_out(Receipt& receipt, const ChangePlan& plan) {
  for (const std::string& directory : receipt.directories) {
    auto made = files_.make_directory(directory, kUsualDirectory);
    if (made) made = files_.sync_directory(parent_directory(directory));
    if (!made) return made;
  }
  for (const FileChange& change : plan.files) {
    auto written = files_.write_new(staged(change.path, receipt.id), change.bytes, change.mode);
    if (!written) return written;
  }
  receipt.state = Receipt::State::applied;
  const std::string finished = staged(path_of(receipt));
  auto done = files_.write_new(finished, text_of(receipt), kPrivateFile);
  for (const FileChange& change : plan.files) {
    if (done) done = files_.rename(staged(change.path, receipt.id), change.path);
    if (done) done = files_.sync_directory(parent_directory(change.path));
  }
  if (done) done = files_.rename(finished, path_of(receipt));
  if (done) done = files_.sync_directory(directory_of(receipt));
  return done;
}

Result<Receipt> ChangeSet::apply(const ChangePlan& plan_, std::vector<Receipt>* taken) {
  if (auto made = make_private_directory(files_, directory_); !made) {
    return tl::unexpected(made.error());
  }
  // What is wrong with the plan itself shows before anything is taken back.
  const auto checked = plan(plan_);
  if (!checked) return checked;
  const auto former = plan_of_applied(plan_.action, plan_.subject);
  if (!former) return tl::unexpected(former.error());
  auto done = take_back(plan_.action, plan_.subject);
  if (!done) return tl::unexpected(done.error());
  auto receipt = apply_free(plan_, checked->made);
  if (!receipt && *former) (void)apply_free(**former, checked->made);
  if (receipt && taken) *taken = *std::move(done);
  return receipt;
}

/// Where nothing is applied to the subject.
Result<Receipt> ChangeSet::apply_free(const ChangePlan& plan_, const std::string& made) {
  auto receipt = plan(plan_);
  if (!receipt) return receipt;
  receipt->made = made;
  for (std::size_t attempt = 0;; ++attempt) {
    receipt->id = id_of(receipt->made, receipt->subject, attempt);
    const auto there = files_.info(directory_of(*receipt));
    if (!there) return tl::unexpected(there.error());
    const auto begun = files_.info(directory_of(*receipt) + std::string(kRemains));
    if (!begun) return tl::unexpected(begun.error());
    if (!there->exists() && !begun->exists()) break;
  }
  receipt->state = Receipt::State::prepared;
  if (auto done = prepare(*receipt); !done) {
    (void)discard(*receipt);
    return tl::unexpected(done.error());
  }
  if (auto done = carry_out(*receipt, plan_); !done) {
    // The receipt on disk still says "prepared": if this fails too, the next run does it.
    receipt->state = Receipt::State::prepared;
    if (restore_files(*receipt) && remove_directories(*receipt)) (void)discard(*receipt);
    return tl::unexpected(done.error());
  }
  return receipt;
}

/// None when nothing is applied, or when it was interrupted.
Result<std::optional<ChangePlan>> ChangeSet::plan_of_applied(const std::string& action,
                                                             const std::string& subject) {
  const auto applied = newest_applied(action, subject);
  if (!applied) return tl::unexpected(applied.error());
  if (!*applied || (*applied)->state != Receipt::State::applied) return std::nullopt;
  ChangePlan out;
  out.action = action;
  out.subject = subject;
  out.before = (*applied)->before;
  out.after = (*applied)->after;
  out.undo_before = (*applied)->undo_before;
  out.undo_after = (*applied)->undo_after;
  for (const ReceiptFile& file : (*applied)->files) {
    const auto bytes = files_.read(file.path, kLargestChangedFile);
    if (bytes) out.files.push_back({file.path, *bytes, file.after.mode});
  }
  return out;
}

Result<std::optional<FileChange>> ChangeSet::original(const std::string& action,
                                                      const std::string& subject,
                                                      const std::string& path, std::size_t limit) {
  const auto applied = newest_applied(action, subject);
  if (!applied) return tl::unexpected(applied.error());
  std::string source = path;
  auto info = files_.info(path);
  if (!info) return tl::unexpected(info.error());
  unsigned mode = info->mode;
  bool exists = info->exists();
  if (*applied) {
    const auto& files = (*applied)->files;
    const auto file = std::ranges::find(files, path, &ReceiptFile::path);
    if (file != files.end()) {
      exists = file->before.exists;
      mode = file->before.mode;
      source = directory_of(**applied) + '/' + file->backup;
    }
  }
  if (!exists) return std::nullopt;
  auto bytes = files_.read(source, limit);
  if (!bytes) return tl::unexpected(bytes.error());
  return FileChange{path, *std::move(bytes), mode};
}

Result<ReceiptListing> ChangeSet::receipts() {
  ReceiptListing out;
  const auto info = files_.info(directory_);
  if (!info) return tl::unexpected(info.error());
  if (!info->exists()) return out;
  const auto names = files_.list(directory_);
  if (!names) return tl::unexpected(names.error());
  for (const std::string& name : *names) {
    if (name.ends_with(kRemains)) continue;
    Receipt wanted;
    wanted.id = name;
    const auto file = files_.info(path_of(wanted));
    if (!file) return tl::unexpected(file.error());
    if (!file->exists()) continue;
    auto receipt = find(name);
    if (receipt) {
      out.receipts.push_back(*std::move(receipt));
    } else {
      out.damaged.push_back({name, receipt.error()});
    }
  }
  return out;
}

Result<Receipt> ChangeSet::find(const std::string& id_or_path) {
  std::string path = id_or_path;
  if (path.find('/') == std::string::npos) path = directory_ + '/' + path;
  const auto info = files_.info(path);
  if (!info) return tl::unexpected(info.error());
  if (info->is_directory()) path = fmt::format("{}/{}", path, kReceiptName);
  const auto text = files_.read(path, kLargestReceipt);
  if (!text) return tl::unexpected(text.error());
  auto receipt = read_receipt(*text, path);
  if (!receipt) return receipt;
  const auto real = files_.real_path(path);
  const auto own = files_.real_path(path_of(*receipt));
  if (!real || !own || *real != *own) {
    return fail(Fault::refused, "receipt-moved", path,
                "is not where this user's receipts are, or under another name",
                "the old bytes that it needs lie beside the original");
  }
  return receipt;
}

Result<std::optional<Receipt>> ChangeSet::newest_applied(const std::string& action,
                                                         const std::string& subject) {
  auto all = receipts();
  if (!all) return tl::unexpected(all.error());
  for (const DamagedReceipt& each : all->damaged) {
    if (subject.empty() || may_be_of(each.id, subject)) return tl::unexpected(each.problem);
  }
  std::optional<Receipt> found;
  for (Receipt& receipt : all->receipts) {
    if (receipt.state == Receipt::State::rolled_back) continue;
    const bool asked = subject.empty() || (receipt.subject == subject && receipt.action == action);
    if (asked) found = std::move(receipt);
  }
  return found;
}

Result<std::vector<Receipt>> ChangeSet::take_back(const std::string& action,
                                                  const std::string& subject) {
  auto out = recover();
  if (!out) return out;
  auto applied = newest_applied(action, subject);
  if (!applied) return tl::unexpected(applied.error());
  if (!*applied) return out;
  auto done = rollback(**std::move(applied), false);
  if (!done) return tl::unexpected(done.error());
  out->push_back(*std::move(done));
  return out;
}

Result<std::vector<Receipt>> ChangeSet::recover() {
  std::vector<Receipt> out;
  const auto info = files_.info(directory_);
  if (!info) return tl::unexpected(info.error());
  if (!info->exists()) return out;
  auto all = receipts();
  if (!all) return tl::unexpected(all.error());
  for (Receipt& receipt : all->receipts) {
    if (!receipt.is_unfinished()) continue;
    auto done = rollback(std::move(receipt), false);
    if (!done) return tl::unexpected(done.error());
    out.push_back(*std::move(done));
  }
  if (auto cleared = clear_remains(); !cleared) return tl::unexpected(cleared.error());
  return out;
}

}  // namespace metaldoctor
