#pragma once
// What metal-probe and the injected library wrote, as captures and journals.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "scanners/device/capture.h"
#include "scanners/device/wire_lines.h"

namespace metaldoctor {

/// One run of metal-probe.
struct ProbeOutput {
  std::string version;
  Capture::System system;
  /// The default device first; where the machine shows none, one capture without answers. Facts of
  /// each: "devices.count" (of MTLCopyAllDevices), "devices.default" (whether
  /// MTLCreateSystemDefaultDevice gave one), "device.class", "device.default", "rset_ok",
  /// "counterSets", and "log.damaged_line", "log.cut_short" as of a log. What a damaged or missing
  /// line should have said is unknown, with the reason.
  std::vector<Capture> devices;
  bool complete = false;  ///< the last line is there and counts the others
  std::vector<WireDamage> damaged;
  std::size_t damaged_count = 0;
};
Result<ProbeOutput> read_probe(const Tables& tables, std::string_view text, std::string_view name);

/// What one process wrote into a journal. Several may share a file.
struct JournalProcess {
  std::uint64_t pid = 0;
  std::string executable;
  std::string origin;  ///< where the profile came from: "section", "METALDOCTOR_PROFILE" ...
  std::string state;   ///< "active", "stock", "malformed"; empty = the line is missing
  std::uint64_t changes = 0;
  std::string bound, callers, scope;

  struct Install {
    std::string device_class;
    std::string state;  ///< "waiting", "installed", "refused"
    std::uint64_t hooks = 0;
    std::string reason, selector;
  };
  std::vector<Install> installs;

  struct Asked {
    std::string device_class;
    QueryKey key;
    Value stock, given;
    std::string image;  ///< of the caller; empty = none, and `offset` is an address
    std::uint64_t offset = 0;
  };
  std::vector<Asked> asked;  ///< each key once
  bool full = false;         ///< more questions may have been asked than a journal holds

  /// The hooks of at least one device class are in place.
  bool took_hold() const;
};
struct Journal {
  std::string version;
  std::vector<JournalProcess> processes;  ///< in order of their first line
  std::vector<WireDamage> damaged;
  std::size_t damaged_count = 0;
};
Result<Journal> read_journal(const Tables& tables, std::string_view text, std::string_view name);

}  // namespace metaldoctor
