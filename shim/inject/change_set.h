#pragma once
// Changes to several files that are all made or all undone, whatever stops the program in between:
//
//   1. the old bytes are kept beside the receipt, and the receipt is on disk, before any change: in
//      a directory "ID+new" that is renamed to "ID" when it is whole;
//   2. every new file is written out under a temporary name: from here on no space is needed;
//   3. each is renamed into place; then the receipt says "applied".
//
// A receipt that says "prepared" or "rolling-back" belongs to an interrupted run. The next apply or
// rollback takes the files back first.
#include <optional>
#include <string>
#include <vector>

#include "shim/inject/clock.h"
#include "shim/inject/file_system.h"
#include "shim/inject/receipt.h"

namespace metaldoctor {

/// A receipt that cannot be read, or is not obeyed.
struct DamagedReceipt {
  std::string id;
  Diagnostic problem;
};

struct ReceiptListing {
  std::vector<Receipt> receipts;  ///< oldest first
  std::vector<DamagedReceipt> damaged;
};

struct FileChange {
  std::string path;
  std::string bytes;
  unsigned mode = 0644;
};

struct ChangePlan {
  std::string action, subject;
  std::vector<FileChange> files;
  std::vector<ReceiptCommand> before, after, undo_before, undo_after;
};

class ChangeSet {
 public:
  /// `directory`: where receipts are kept, absolute.
  ChangeSet(FileSystem& files, Clock& clock, std::string directory)
      : files_(files), clock_(clock), directory_(std::move(directory)) {}

  /// What apply would do; nothing is written.
  Result<Receipt> plan(const ChangePlan& plan);
  /// After an error every file is as it was. What is applied to the same subject is taken back
  /// first, so that one rollback leads to where it was before metaldoctor; when the rest fails, it
  /// is applied again. `taken`: what was taken back.
  Result<Receipt> apply(const ChangePlan& plan, std::vector<Receipt>* taken = nullptr);
  /// A file as it was before what is applied to the subject; none when there was none. A plan that
  /// depends on old bytes is made from this, before anything changes.
  Result<std::optional<FileChange>> original(const std::string& action, const std::string& subject,
                                             const std::string& path, std::size_t limit);
  /// Finishes what an interrupted run left; the receipts that were taken back.
  Result<std::vector<Receipt>> recover();
  /// Removes what interrupted starts left; no file of the user's depends on it.
  Result<void> clear_remains();

  Result<ReceiptListing> receipts();
  /// By id, or by the path of a receipt or of its directory.
  Result<Receipt> find(const std::string& id_or_path);
  /// The newest one that is applied to `subject`, if any; every subject when it is empty. An error
  /// when a damaged receipt may be that one.
  Result<std::optional<Receipt>> newest_applied(const std::string& action,
                                                const std::string& subject);
  /// Whether rollback would put every file back; looks and changes nothing.
  Result<void> check_rollback(const Receipt& receipt, bool force);
  /// Puts every file back. Refused (Fault::refused) when one was changed since, unless `force`: its
  /// bytes are then kept beside the receipt. Nothing happens to a receipt that is rolled back.
  Result<Receipt> rollback(Receipt receipt, bool force);

  std::string path_of(const Receipt& receipt) const;

 private:
  Result<ReceiptFile::State> state_of(const std::string& path);
  Result<void> save(const Receipt& receipt);
  Result<std::vector<Receipt>> take_back(const std::string& action, const std::string& subject);
  Result<std::optional<ChangePlan>> plan_of_applied(const std::string& action,
                                                    const std::string& subject);
  Result<Receipt> apply_free(const ChangePlan& plan, const std::string& made);
  Result<void> prepare(const Receipt& receipt);
  Result<void> carry_out(Receipt& receipt, const ChangePlan& plan);
  Result<void> keep_edited(const Receipt& receipt, std::size_t index);
  Result<void> restore_files(const Receipt& receipt);
  Result<void> remove_directories(const Receipt& receipt);
  void forget(const Receipt& receipt);
  Result<void> discard(const Receipt& receipt);
  Result<void> remove_remains(const std::string& name);
  std::string directory_of(const Receipt& receipt) const { return directory_ + '/' + receipt.id; }

  FileSystem& files_;
  Clock& clock_;
  std::string directory_;
};

}  // namespace metaldoctor
