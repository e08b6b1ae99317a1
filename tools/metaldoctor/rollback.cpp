#include <fmt/format.h>

#include <memory>

#include "shim/inject/change_set.h"
#include "tools/metaldoctor/context.h"
#include "tools/metaldoctor/system_commands.h"
#include "tools/platform/posix_file_system.h"
#include "tools/platform/posix_process_runner.h"
#include "tools/render/diagnosis.h"
#include "tools/render/receipt.h"

namespace metaldoctor {
namespace {

struct RollbackInput {
  std::string receipt;
  bool force = false, list = false, no_load = false;
};

ExitStatus list_receipts(Context& context, ChangeSet& changes) {
  const auto all = changes.receipts();
  if (!all) return context.report(all.error());
  ExitStatus status = ExitStatus::done;
  for (const DamagedReceipt& each : all->damaged) {
    status = worse(status, context.report(each.problem));
  }
  return context.write(receipt_list_text(*all), status);
}

/// The newest one may be the damaged one, so it is not guessed.
Result<std::optional<Receipt>> choose_newest(Context& context, ChangeSet& changes) {
  if (auto cleared = changes.clear_remains(); !cleared) return tl::unexpected(cleared.error());
  auto newest = changes.newest_applied("", "");
  if (newest) return newest;
  const auto all = changes.receipts();
  if (!all) return newest;
  for (const Receipt& each : all->receipts) {
    if (each.state == Receipt::State::rolled_back) continue;
    context.note("metaldoctor rollback: can be rolled back: metaldoctor rollback " + each.id);
  }
  return newest;
}

Result<std::optional<Receipt>> choose(Context& context, ChangeSet& changes,
                                      const RollbackInput& input) {
  if (input.receipt.empty()) return choose_newest(context, changes);
  auto found = changes.find(input.receipt);
  if (!found) return tl::unexpected(found.error());
  return std::optional(*std::move(found));
}

Result<Receipt> roll_back(Context& context, ChangeSet& changes, Receipt receipt,
                          const RollbackInput& input) {
  if (receipt.state == Receipt::State::rolled_back) {
    context.note(fmt::format("metaldoctor rollback: {} is rolled back already", receipt.id));
    return changes.rollback(std::move(receipt), input.force);
  }
  // A job is not stopped for a rollback that is refused then.
  if (auto safe = changes.check_rollback(receipt, input.force); !safe) {
    return tl::unexpected(safe.error());
  }
  PosixProcessRunner runner;
  if (!input.no_load) {
    if (auto ran = run_system_commands(context, runner, receipt.undo_before); !ran) {
      return tl::unexpected(ran.error());
    }
  }
  auto done = changes.rollback(std::move(receipt), input.force);
  if (!done || input.no_load) return done;
  if (auto ran = run_system_commands(context, runner, done->undo_after); !ran) {
    context.note("metaldoctor rollback: every file is as it was; one command failed:");
    return tl::unexpected(ran.error());
  }
  return done;
}

ExitStatus rollback_command(Context& context, const RollbackInput& input) {
  const auto directory = receipt_directory();
  if (!directory) return context.report(directory.error());
  PosixFileSystem files;
  SystemClock clock;
  ChangeSet changes(files, clock, *directory);
  if (input.list) return list_receipts(context, changes);
  auto receipt = choose(context, changes, input);
  if (!receipt) return context.report(receipt.error());
  if (!*receipt) {
    context.note("metaldoctor rollback: nothing is applied");
    return ExitStatus::done;
  }
  const auto done = roll_back(context, changes, **std::move(receipt), input);
  if (!done) return context.report(done.error());
  return context.write(context.options.format == "json"
                           ? json_text(to_json(*done))
                           : receipt_text(*done, changes.path_of(*done), context.style()),
                       ExitStatus::done);
}

}  // namespace

Action define_rollback(CLI::App& app) {
  auto input = std::make_shared<RollbackInput>();
  app.add_option("receipt", input->receipt,
                 "an id or a path; the default is the newest applied one")
      ->type_name("RECEIPT");
  app.add_flag("--force", input->force,
               "restore files that were changed since; their bytes are kept beside the receipt");
  app.add_flag("--list", input->list, "list the receipts, oldest first");
  app.add_flag("--no-load", input->no_load, "restore the files and only show the commands");
  add_format_option(app, {"text", "json"});
  return [input](Context& context) { return rollback_command(context, *input); };
}

}  // namespace metaldoctor
