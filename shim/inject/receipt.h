#pragma once
// What apply wrote, so that rollback can restore it. Document kind "receipt". It is written before
// the first file is touched, and carries a hash of itself: one that was edited is not obeyed.
#include <string>
#include <string_view>
#include <vector>

#include "tables/document.h"

namespace metaldoctor {

/// A command that belongs to a change: launchctl, defaults. Run on macOS only, shown everywhere.
struct ReceiptCommand {
  std::vector<std::string> argv;
  bool may_fail = false;  ///< such as stopping a job that does not run
  friend bool operator==(const ReceiptCommand&, const ReceiptCommand&) = default;
};

struct ReceiptFile {
  struct State {
    bool exists = false;
    std::string sha256;
    unsigned mode = 0;
    friend bool operator==(const State&, const State&) = default;
  };
  std::string path;
  State before, after;
  std::string backup;  ///< name below the receipt's directory; empty when nothing was there
};

struct Receipt {
  enum class State { planned, prepared, applied, rolling_back, rolled_back } state = State::planned;
  std::string id;       ///< the name of its directory
  std::string made;     ///< UTC
  std::string action;   ///< "launch-agent", "wrapper", "host-preference"
  std::string subject;  ///< label, path of the wrapper, name of the preference
  std::vector<ReceiptFile> files;
  std::vector<std::string> directories;  ///< that apply made, outermost first
  std::vector<ReceiptCommand> before, after, undo_before, undo_after;

  /// apply or rollback was interrupted.
  bool is_unfinished() const { return state == State::prepared || state == State::rolling_back; }
};

std::string_view to_string(Receipt::State state);
Json to_json(const Receipt& receipt);
/// Refused (Fault::refused) is one that was edited, or names a path that no receipt of ours would.
Result<Receipt> read_receipt(std::string_view text, std::string_view name);

}  // namespace metaldoctor
