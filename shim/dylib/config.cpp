#include "shim/dylib/config.h"

#include "shim/profile_text/query.h"

namespace metaldoctor::shim {
namespace {

/// A whole variable of another tool. Those tools also read hexadecimal and octal numbers, which
/// nobody has published a use of: malformed here.
bool read_variable(const char* text, uint64_t& out) {
  Reader in(text, length(text));
  return in.number(out) && in.at_end();
}

/// The variables of one published shim. All of them raise an answer and never lower one.
struct DropIn {
  Origin origin;
  char family_max[40], threadgroup_memory[40], working_set[44];
};
constexpr DropIn kDropIns[] = {
    {Origin::lume, "LUME_METAL_APPLE_FAMILY_MAX", "LUME_METAL_MAX_THREADGROUP_MEMORY",
     "LUME_METAL_RECOMMENDED_WORKING_SET_SIZE"},
    {Origin::veertu, "VEERTU_ANKA_GPU_APPLE_FAMILY_MAX", "VEERTU_ANKA_GPU_THREADGROUP_MEMORY_MIN",
     "VEERTU_ANKA_GPU_WORKING_SET_MIN"},
};

constexpr uint16_t kFamily = wire_of("supportsFamily:");
constexpr uint16_t kThreadgroupMemory = wire_of("maxThreadgroupMemoryLength");
constexpr uint16_t kWorkingSet = wire_of("recommendedMaxWorkingSetSize");
static_assert(kFamily != 0 && kFamily < kThreadgroupMemory && kThreadgroupMemory < kWorkingSet);
/// Those tools raise every value up to the ceiling; these are the Apple families that exist.
constexpr uint64_t kFirstFamily = 1001, kLastFamily = 1011, kLastCeiling = 1999;

/// An optional size; unset and empty mean: leave the answer alone.
bool add_size(const char* text, uint16_t wire, Overrides& out) {
  if (!text || !*text) return true;
  uint64_t value = 0;
  if (!read_variable(text, value)) return false;
  out.changes[out.count++] = {wire, true, 0, value};
  return true;
}

bool read_drop_in(const DropIn& names, const char* ceiling, Lookup lookup, Overrides& out) {
  uint64_t highest = 0;
  if (!read_variable(ceiling, highest) || highest < kFirstFamily || highest > kLastCeiling) {
    return false;
  }
  Overrides read;
  read.bound = Bound::unbounded;
  read.scope = Scope::tree;  // as those tools do: nothing is taken out of the environment
  for (uint64_t family = kFirstFamily; family <= highest && family <= kLastFamily; ++family) {
    read.changes[read.count++] = {kFamily, false, static_cast<int64_t>(family), 1};
  }
  if (!add_size(lookup(names.threadgroup_memory), kThreadgroupMemory, read)) return false;
  if (!add_size(lookup(names.working_set), kWorkingSet, read)) return false;
  out = read;
  return true;
}

}  // namespace

void configure(const char* section, size_t size, Lookup lookup, Configuration& out) {
  Reader mark(section, size);
  if (!mark.take(kTemplateMark)) {
    while (size > 0 && section[size - 1] == 0) --size;
    out.origin = Origin::section;
    out.malformed = !parse_overrides(section, size, out.overrides);
    return;
  }
  if (const char* text = lookup("METALDOCTOR_PROFILE")) {
    out.origin = Origin::variable;
    out.malformed = !parse_overrides(text, length(text), out.overrides);
    return;
  }
  for (const DropIn& names : kDropIns) {
    if (const char* ceiling = lookup(names.family_max)) {
      out.origin = names.origin;
      out.malformed = !read_drop_in(names, ceiling, lookup, out.overrides);
      return;
    }
  }
}

const char* last_component(const char* path) {
  const char* leaf = path;
  for (; *path; ++path) {
    if (*path == '/') leaf = path + 1;
  }
  return leaf;
}

void remove_library(char* list, const char* leaf) {
  char* out = list;
  for (const char* entry = list; *entry;) {
    const char* end = entry;
    const char* name = entry;
    for (; *end && *end != ':'; ++end) {
      if (*end == '/') name = end + 1;
    }
    if (!same(name, static_cast<size_t>(end - name), leaf)) {
      if (out != list) *out++ = ':';
      while (entry != end) *out++ = *entry++;
    }
    entry = *end ? end + 1 : end;
  }
  *out = 0;
}

}  // namespace metaldoctor::shim
