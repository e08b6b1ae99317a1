#pragma once
#include <vector>

#include "scanners/device/capture.h"
#include "scanners/diagnose/diagnose.h"
#include "tables/tables.h"

namespace metaldoctor {

/// Every answer that the tables give for this host, and every other answer of the capture, both
/// ways; in table order.
std::vector<Comparison> compare_with_host(const Tables& tables, const Capture& capture,
                                          const Chip& host, const OsKnowledge& os);

/// Without a host: the answers that are the same on every Mac. Other families stay unknown.
std::vector<Comparison> compare_without_host(const Tables& tables, const Capture& capture);

/// For a device that no Apple chip is behind: only what no device can answer is a finding.
std::vector<Comparison> compare_with_nothing(const Tables& tables, const Capture& capture);

/// Hangs on each under-report the features it locks (where the host is known) and the hazards of
/// mending it, and on each claim its hazards. A feature goes to the lowest under-reported family
/// that has it, and only where no unread family may bring it already.
void add_consequences(const Tables& tables, const Capture& capture, const Chip* host,
                      const OsKnowledge& os, std::vector<Comparison>& comparisons);

}  // namespace metaldoctor
