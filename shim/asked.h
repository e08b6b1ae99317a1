#pragma once
// What a process really asked, against what its rules or its binary may ask.
#include <set>
#include <string>
#include <vector>

#include "scanners/device/wire_reader.h"
#include "shim/recommend.h"

namespace metaldoctor {

/// Every question in a journal, of all its processes. Refused (Fault::input) is a journal that
/// proves nothing: no process with hooks in place, or one that asked more than a journal holds.
Result<std::set<QueryKey>> asked_in(const Journal& journal, const std::string& name);

/// Takes the paths out that hang on device answers none of which was asked, and gives their ids:
/// the process never came to their code.
std::vector<std::string> remove_unasked(std::vector<Path>& paths, const std::set<QueryKey>& asked);

}  // namespace metaldoctor
