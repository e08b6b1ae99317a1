#include "shim/dylib/journal.h"

#include "shim/dylib/system.h"

namespace metaldoctor::shim {
namespace {

using wire::Line;

uint64_t pid() {
  return static_cast<uint64_t>(getpid());
}

void add_answer(Line& line, const Query& query, uint64_t answer) {
  if (query.is_boolean) {
    line.truth(answer != 0);
  } else {
    line.number(answer);
  }
}

}  // namespace

void Journal::open(const char* path) {
  if (!path || !*path) return;
  const int saved = *__error();
  file_plus_one_ =
      1 + (same(path, length(path), "stderr")
               ? 2
               : ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600));
  *__error() = saved;
}

/// One write a line, so that lines of several processes do not mix. The caller's errno survives;
/// a full disk must not disturb the program.
void Journal::send(Line& line) const {
  const size_t size = line.finish();
  if (size == 0) return;
  const int saved = *__error();
  if (write(file_plus_one_ - 1, line.data(), size) < 0) *__error() = saved;
}

void Journal::process(const char* executable, const Configuration& configuration) {
  if (!is_open()) return;
  Line header(wire::kHeader);
  header.text("shim").text(METALDOCTOR_VERSION);
  send(header);
  Line line("process");
  line.number(pid()).text(executable);
  send(line);
  const Overrides& overrides = configuration.overrides;
  const bool nothing = configuration.origin == Origin::nothing;
  Line profile("profile");
  profile.number(pid())
      .text(kOriginNames[static_cast<size_t>(configuration.origin)])
      .text(configuration.malformed ? "malformed"
            : nothing               ? "stock"
                                    : "active")
      .number(overrides.count)
      .text(kBoundNames[static_cast<size_t>(overrides.bound)])
      .text(kCallersNames[static_cast<size_t>(overrides.callers)])
      .text(kScopeNames[static_cast<size_t>(overrides.scope)]);
  send(profile);
}

void Journal::install(const char* device_class, const char* state, uint64_t hooks,
                      const char* reason, const char* selector) {
  if (!is_open()) return;
  Line line("install");
  line.number(pid()).text(device_class).text(state).number(hooks).text(reason).text(selector);
  send(line);
}

bool Journal::first_time(const Query& query, int64_t argument) {
  // 16 bits of wire and 48 of argument. Arguments are enum values and counts: two that differ in
  // the upper 16 bits only do not occur, and would cost one line of the journal.
  const uint64_t key = uint64_t{query.wire} << 48 | (static_cast<uint64_t>(argument) << 16 >> 16);
  const size_t start = key * 0x9E3779B97F4A7C15u >> 55;
  for (size_t i = 0; i < wire::kMostQuestions; ++i) {
    uint64_t found = 0;
    if (__atomic_compare_exchange_n(&asked_[(start + i) % wire::kMostQuestions], &found, key, false,
                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      return true;
    }
    if (found == key) return false;
  }
  return false;
}

void Journal::asked(const char* device_class, const Query& query, int64_t argument, uint64_t stock,
                    uint64_t given, const void* caller) {
  if (!first_time(query, argument)) return;
  Dl_info image = {};
  const bool known = dladdr(caller, &image) != 0 && image.dli_fname;
  Line line("asked");
  line.number(pid()).text(device_class).text(query.selector);
  if (query.has_argument) {
    line.integer(argument);
  } else {
    line.no_argument();
  }
  add_answer(line, query, stock);
  add_answer(line, query, given);
  line.text(known ? image.dli_fname : "");
  const auto address = reinterpret_cast<uintptr_t>(caller);
  line.number(known ? address - reinterpret_cast<uintptr_t>(image.dli_fbase) : address);
  send(line);
}

}  // namespace metaldoctor::shim
