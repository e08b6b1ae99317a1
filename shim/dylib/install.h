#pragma once
// Puts the hooks onto the device classes of this process.
#include "shim/dylib/config.h"
#include "shim/dylib/journal.h"
#include "shim/dylib/system.h"

namespace metaldoctor::shim {

struct Hook {
  Sel selector = nullptr;
  Imp original = nullptr;
  const Query* query = nullptr;
  int64_t argument_mask = 0;  ///< 0 if the query has no argument: the register holds anything
  Range changes;
};

/// One concrete device class, with an original of its own for each hooked method.
struct DeviceClass {
  Class cls = nullptr;
  size_t hook_count = 0;
  Hook hooks[kQueryCount + 1];  ///< ends with one without a selector
};

/// A guest has one kind of device, and a profile is made for one: answers are changed on the first
/// class that starts. Others are watched at most; what stays stock is journalled.
inline constexpr size_t kMaxClasses = 4;

struct State {
  Configuration configuration;
  Journal journal;
  Imp init_family_support = nullptr;
  size_t class_count = 0;
  DeviceClass classes[kMaxClasses];
};
extern State state;

/// Hooks -[_MTLDevice initGPUFamilySupport]: the one moment at which a device exists, is not
/// wrapped yet, and nothing has asked its families. False, and nothing changed, if that method is
/// not there or is not what it was on the systems that were examined.
bool install_moment();
/// Hooks the wanted queries on exactly `cls`, all or none. Harmless to repeat.
void install_on(Class cls);

}  // namespace metaldoctor::shim
