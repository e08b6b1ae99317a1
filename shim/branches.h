#pragma once
// Which way a program goes on one device and on another: `audit --assume` and `--diff`.
#include <string>
#include <vector>

#include "scanners/device/capture.h"
#include "shim/recommend.h"

namespace metaldoctor {

/// A device to assume: a capture, or a chip of the tables on bare metal.
struct AssumedDevice {
  std::string name;
  Capture capture;
};

/// What a bare-metal Mac with this chip answers by the tables, as a capture.
AssumedDevice device_of_chip(const Tables& tables, const Chip& chip, const OsKnowledge& os);

/// One path on two devices.
struct Branch {
  Path path;
  Truth first = Truth::unknown;   ///< on the assumed device
  Truth second = Truth::unknown;  ///< on the other one
  /// Both known and not the same.
  bool differs = false;
  /// It differs, is certain, and to close it is not the better way.
  bool is_worse = false;
  /// "supportsFamily:1007: no, yes": the answers that differ between the two.
  std::vector<std::string> because;
};

struct BranchComparison {
  std::string first, second;  ///< names of the devices
  std::vector<Branch> branches;
  std::vector<std::string> notes;  ///< assumptions taken
  bool is_ranked = true;           ///< the second device is the better one

  std::size_t count_worse() const;
  /// A worse branch; of two devices without a rank, any that differs and is certain.
  bool has_findings() const;
};

/// The guest against its host: the second device keeps the first one's name, driver facts, macOS
/// and environment, because nothing that a profile can do changes those. Without a known host, the
/// least Mac chip of the tables is taken, so that whatever is lost is lost on every host.
Result<BranchComparison> compare_with_host(const Tables& tables, const AssumedDevice& guest,
                                           const std::vector<Path>& paths,
                                           const RecommendOptions& options);

/// Two devices, each with its own name and driver facts.
BranchComparison compare_devices(const Tables& tables, const AssumedDevice& first,
                                 const AssumedDevice& second, const std::vector<Path>& paths,
                                 const RecommendOptions& options);

}  // namespace metaldoctor
