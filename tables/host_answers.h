#pragma once
#include <optional>
#include <string>
#include <vector>

#include "tables/answer.h"
#include "tables/evidence.h"
#include "tables/os_version.h"
#include "tables/tables.h"

namespace metaldoctor {

/// What a bare-metal device with this chip answers, by Apple's tables.
struct HostAnswer {
  Answer answer;
  Evidence evidence = Evidence::documented;  ///< inferred where it hangs on an assumed OS
  std::string why;  ///< "Apple7 (M1 Ultra)", "limit threadgroup_memory_total"
  std::vector<std::string> sources;
};

/// The answer for one question; none where the tables do not say ("varies", unconfirmed), where
/// the chip's family is unconfirmed, or where the OS is known to be too old to be asked (a family
/// below its min_macos on a known OS is answered no).
std::optional<HostAnswer> host_answer(const Tables& tables, const Chip& chip, const OsKnowledge& os,
                                      const QueryKey& key);

/// Every question the tables can answer for this chip, in table order.
std::vector<HostAnswer> host_answers(const Tables& tables, const Chip& chip, const OsKnowledge& os);

/// The value a limit or feature has on every Mac chip of the tables, whatever the host
/// (maxThreadgroupMemoryLength is 32768 on all of them); none where chips differ.
std::optional<HostAnswer> any_host_answer(const Tables& tables, const QueryKey& key);

/// short names of every family the chip reports under `os`.
std::vector<std::string> chip_families(const Tables& tables, const Chip& chip,
                                       const OsKnowledge& os);

}  // namespace metaldoctor
