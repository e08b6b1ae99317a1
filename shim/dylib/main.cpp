// The entry of the injected library: dyld runs the constructor before any code of the program, and
// after Metal has been loaded, because this library links it.
#include "shim/dylib/install.h"

namespace metaldoctor::shim {
namespace {

/// Takes this library out of DYLD_INSERT_LIBRARIES, so that child processes are not touched; a
/// system tool for which the library has no slice would even be killed by dyld. The text only gets
/// shorter, so it is edited where it lies.
void leave_environment() {
  Dl_info self = {};
  char* list = getenv("DYLD_INSERT_LIBRARIES");
  if (!list || dladdr(reinterpret_cast<const void*>(&leave_environment), &self) == 0) return;
  remove_library(list, last_component(self.dli_fname));
  if (!*list) unsetenv("DYLD_INSERT_LIBRARIES");
}

}  // namespace
}  // namespace metaldoctor::shim

/// `emit` writes the profile here, in every slice. Exported, so that a process can be asked what
/// was injected into it; volatile, so that the compiler does not read the template instead.
extern "C" [[gnu::section("__TEXT,__mdprofile"), gnu::used, gnu::visibility("default")]]
const volatile char metaldoctor_profile[metaldoctor::shim::kSectionSize] =
    "mdtemplate1;" METALDOCTOR_VERSION ";";

[[gnu::constructor]] static void start(int, char** arguments) {
  using namespace metaldoctor::shim;
  const char* section = const_cast<const char*>(metaldoctor_profile);
  configure(section, kSectionSize, getenv, state.configuration);
  const Configuration& configuration = state.configuration;
  if (configuration.origin == Origin::nothing) return;
  state.journal.open(getenv("METALDOCTOR_JOURNAL"));
  state.journal.process(arguments ? arguments[0] : nullptr, configuration);
  if (configuration.malformed) return;
  if (configuration.overrides.scope == Scope::process) leave_environment();
  // Without changes and without a journal there is nothing to hook.
  if (configuration.overrides.count > 0 || state.journal.is_open()) install_moment();
}
