#include "shim/dylib/install.h"

namespace metaldoctor::shim {

State state;

namespace {

#if defined(__APPLE__) && defined(__x86_64__)
constexpr char kBoolean = 'c';  // BOOL is signed char there, bool on arm64
#else
constexpr char kBoolean = 'B';
#endif

/// dyld's mach_header flag for images in the shared cache (mach-o/loader.h, MH_DYLIB_IN_CACHE).
constexpr uint32_t kInSharedCache = 0x80000000;

/// Whether the changed answer is for this caller. `app` keeps it from Apple's own frameworks, whose
/// internal decisions would follow it; a caller that belongs to no image gets the stock answer.
bool meant_for(const void* caller) {
  if (state.configuration.overrides.callers == Callers::all) return true;
  Dl_info image = {};
  if (dladdr(caller, &image) == 0 || !image.dli_fbase) return false;
  const uint32_t flags = static_cast<const uint32_t*>(image.dli_fbase)[6];  // mach_header_64.flags
  return (flags & kInSharedCache) == 0;
}

const Hook* find_hook(const DeviceClass& device, Sel selector) {
  for (const Hook* hook = device.hooks; hook->selector; ++hook) {
    if (hook->selector == selector) return hook;
  }
  return nullptr;
}

using Original = uint64_t (*)(Id, Sel, int64_t);

/// Calls the device, decides, and keeps the journal.
[[gnu::noinline]] uint64_t answer(const DeviceClass& device, const Hook& hook, const Change* change,
                                  Id self, int64_t argument, const void* caller) {
  const Query& query = *hook.query;
  uint64_t stock = reinterpret_cast<Original>(hook.original)(self, hook.selector, argument);
  if (query.is_boolean) stock = (stock & 0xff) != 0;  // the rest of the register is not defined
  uint64_t given = stock;
  if (change && meant_for(caller)) given = decide(*change, stock);
  if (state.journal.is_open()) {
    state.journal.asked(class_getName(device.cls), query, argument & hook.argument_mask, stock,
                        given, caller);
  }
  return given;
}

/// What is installed on class number K. Each class needs a function of its own: with a lookup by
/// the receiver's class, an implementation that calls super would come back to itself.
/// A question that is not changed goes straight on to the device, without a frame of ours. One that
/// has no argument is passed a register it does not read, which both calling conventions allow.
template <size_t K>
uint64_t hook_function(Id self, Sel selector, int64_t argument) {
  const DeviceClass& device = state.classes[K];
  const Hook* hook = find_hook(device, selector);
  if (!hook) return 0;  // somebody swapped our method under another name
  const Change* change = find_change(hook->changes, argument & hook->argument_mask);
  if (!change && !state.journal.is_open()) {
    return reinterpret_cast<Original>(hook->original)(self, selector, argument);
  }
  return answer(device, *hook, change, self, argument, __builtin_return_address(0));
}

/// A chain of tests and no table: a table of functions would be pointers that arm64e has to sign.
Imp hook_of_class(size_t k) {
  static_assert(kMaxClasses == 4);
  if (k == 0) return reinterpret_cast<Imp>(&hook_function<0>);
  if (k == 1) return reinterpret_cast<Imp>(&hook_function<1>);
  if (k == 2) return reinterpret_cast<Imp>(&hook_function<2>);
  return reinterpret_cast<Imp>(&hook_function<3>);
}

bool is_ours(Imp imp) {
  for (size_t k = 0; k < kMaxClasses; ++k) {
    if (imp == hook_of_class(k)) return true;
  }
  return false;
}

/// "B24@0:8q16" is B@:q: compared without the frame offsets. Signed and unsigned integers of 64
/// bits travel alike; anything else is another method than the one that is known.
bool encoded_as_expected(const char* types, const Query& query) {
  const char want[] = {query.is_boolean ? kBoolean : 'Q', '@', ':', query.has_argument ? 'Q' : '\0',
                       '\0'};
  const char* next = want;
  if (!types) return false;
  for (; *types; ++types) {
    if (*types >= '0' && *types <= '9') continue;
    if (*types != *next && !(*next == 'Q' && *types == 'q')) return false;
    ++next;
  }
  return *next == '\0';
}

bool is_wanted(const Query& query) {
  const Overrides& overrides = state.configuration.overrides;
  if (overrides.count == 0) return true;  // observe: every question is journalled
  const Range range = changes_of(overrides, query.wire);
  return range.first != range.last;
}

/// Works out every hook of a class and changes nothing. The reason for refusing, or null.
const char* plan(DeviceClass& device, const Query*& culprit) {
  const bool observing = state.configuration.overrides.count == 0;
  for (const Query& query : kQueries) {
    if (!is_wanted(query)) continue;
    culprit = &query;
    const Sel selector = sel_registerName(query.selector);
    objc_method* method = class_getInstanceMethod(device.cls, selector);
    if (!method && observing) continue;  // this system does not have it
    if (!method) return "the device class has no such method";
    if (!encoded_as_expected(method_getTypeEncoding(method), query)) {
      if (observing) continue;
      return "the method is encoded otherwise";
    }
    const Imp original = method_getImplementation(method);
    if (is_ours(original)) continue;  // inherited from, or done on, a class that has its hook
    device.hooks[device.hook_count++] = {selector, original, &query, query.has_argument ? -1 : 0,
                                         changes_of(state.configuration.overrides, query.wire)};
  }
  return nullptr;
}

void refuse(const char* device_class, const char* reason, const char* selector) {
  state.journal.install(device_class, "refused", 0, reason, selector);
}

void init_family_support(Id self, Sel selector) {
  reinterpret_cast<void (*)(Id, Sel)>(state.init_family_support)(self, selector);
  install_on(object_getClass(self));
}

}  // namespace

void install_on(Class cls) {
  DeviceClass planned;
  planned.cls = cls;
  const Query* culprit = nullptr;
  if (const char* reason = plan(planned, culprit)) {
    return refuse(class_getName(cls), reason, culprit->selector);
  }
  if (planned.hook_count == 0) return;  // another device of a class that has its hooks
  const bool observing = state.configuration.overrides.count == 0;
  if (!observing && __atomic_load_n(&state.class_count, __ATOMIC_RELAXED) > 0) {
    return refuse(class_getName(cls), "the profile is for the first class of device", "");
  }
  // A number is taken once and never given back, so that two threads never share an entry. Two
  // devices of one class that start at the same moment take two; either one's hooks are right.
  const size_t k = __atomic_fetch_add(&state.class_count, 1, __ATOMIC_RELAXED);
  if (k >= kMaxClasses) {
    __atomic_store_n(&state.class_count, kMaxClasses, __ATOMIC_RELAXED);
    return refuse(class_getName(cls), "there are more device classes than hooks", "");
  }
  state.classes[k] = planned;
  // The originals are published before the first hook can run.
  __atomic_thread_fence(__ATOMIC_RELEASE);
  for (size_t i = 0; i < planned.hook_count; ++i) {
    const Sel selector = planned.hooks[i].selector;
    const char* types = method_getTypeEncoding(class_getInstanceMethod(cls, selector));
    class_replaceMethod(cls, selector, hook_of_class(k), types);
  }
  state.journal.install(class_getName(cls), "installed", planned.hook_count, "", "");
}

bool install_moment() {
  constexpr char kName[] = "initGPUFamilySupport", kTypes[] = "v16@0:8";
  const Class device = objc_getClass("_MTLDevice");
  const Sel selector = sel_registerName(kName);
  objc_method* method = device ? class_getInstanceMethod(device, selector) : nullptr;
  const char* types = method ? method_getTypeEncoding(method) : nullptr;
  if (!types || !same(types, length(types), kTypes)) {
    refuse("_MTLDevice",
           !device   ? "there is no such class"
           : !method ? "the class has no such method"
                     : "the method is encoded otherwise",
           kName);
    return false;
  }
  const Imp original = method_getImplementation(method);
  const Imp replacement = reinterpret_cast<Imp>(&init_family_support);
  if (original == replacement) return true;
  __atomic_store_n(&state.init_family_support, original, __ATOMIC_RELEASE);
  class_replaceMethod(device, selector, replacement, types);
  state.journal.install("_MTLDevice", "waiting", 0, "for a device", kName);
  return true;
}

}  // namespace metaldoctor::shim
