#include "shim/asked.h"

#include <algorithm>

namespace metaldoctor {
namespace {

/// A path without any device answer hangs on other things; a journal says nothing about it.
bool is_unasked(const Path& path, const std::set<QueryKey>& asked) {
  bool has_answers = false;
  for (const Atom& atom : path.predicate.atoms()) {
    if (atom.kind != AtomKind::answer) continue;
    if (asked.contains(atom.key)) return false;
    has_answers = true;
  }
  return has_answers;
}

}  // namespace

Result<std::set<QueryKey>> asked_in(const Journal& journal, const std::string& name) {
  std::set<QueryKey> asked;
  bool holds = false;
  for (const JournalProcess& process : journal.processes) {
    holds = holds || process.took_hold();
    if (process.full) {
      return fail(Fault::input, "journal-full", name,
                  "is full: what was asked after that is not in it, so nothing can be left out");
    }
    for (const JournalProcess::Asked& row : process.asked) asked.insert(row.key);
  }
  if (holds && journal.damaged_count == 0) return asked;
  return fail(Fault::input, "journal-incomplete", name,
              holds ? "has damaged lines: a question that is missing may have been asked"
                    : "shows no process in which the library took hold",
              "metaldoctor trace --journal FILE -- PROGRAM writes one");
}

std::vector<std::string> remove_unasked(std::vector<Path>& paths, const std::set<QueryKey>& asked) {
  std::vector<std::string> left_out;
  std::erase_if(paths, [&](const Path& path) {
    if (!is_unasked(path, asked)) return false;
    left_out.push_back(path.id);
    return true;
  });
  return left_out;
}

}  // namespace metaldoctor
