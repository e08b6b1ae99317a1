// metal-probe: asks every Metal device of this machine every question that is safe to ask, and
// prints the answers in the wire format (tables/wire_format.h) for `metaldoctor scan`. It needs
// nothing installed: libSystem, libobjc and Metal are part of every macOS.
#include "tables/wire_format.h"
#include "tools/metal-probe/ask.h"

namespace metaldoctor::probe {
namespace {

using wire::Line;

/// Standard output; counts lines, so that a cut document can be told from a whole one.
class Output {
 public:
  void line(Line& line) {
    const size_t size = line.finish();
    for (size_t done = 0; done < size;) {
      const long n = write(1, line.data() + done, size - done);
      if (n <= 0) {
        failed_ = true;
        return;
      }
      done += static_cast<size_t>(n);
    }
    lines_ += size != 0;
  }
  uint64_t lines() const { return lines_; }
  bool failed() const { return failed_; }

 private:
  uint64_t lines_ = 0;
  bool failed_ = false;
};

struct SystemValue {
  char key[12];
  char name[28];  ///< of sysctl
  bool is_flag;   ///< an int, 0 or 1
};
constexpr SystemValue kSystemValues[] = {
    {"os", "kern.osproductversion", false},
    {"build", "kern.osversion", false},
    {"hw_model", "hw.model", false},
    {"cpu_brand", "machdep.cpu.brand_string", false},
    {"is_virtual", "kern.hv_vmm_present", true},
    {"translated", "sysctl.proc_translated", true},  // by Rosetta
};

/// A value that the system does not have is left out.
void print_system(Output& out) {
  for (const SystemValue& value : kSystemValues) {
    Line line("system");
    line.text(value.key);
    if (value.is_flag) {
      int flag = 0;
      size_t size = sizeof(flag);
      if (sysctlbyname(value.name, &flag, &size, nullptr, 0) != 0) continue;
      line.truth(flag != 0);
    } else {
      char text[256] = {};
      size_t size = sizeof(text) - 1;
      if (sysctlbyname(value.name, text, &size, nullptr, 0) != 0) continue;
      line.quoted(text);
    }
    out.line(line);
  }
  Line line("system");
#if defined(__x86_64__)
  line.text("arch").quoted("x86_64");
#else
  line.text("arch").quoted("arm64");
#endif
  out.line(line);
}

void add_argument(Line& line, const Query& query, int64_t argument) {
  if (query.argument_count > 0) {
    line.integer(argument);
  } else {
    line.no_argument();
  }
}

/// "1024x1024x1024"
void add_size(Line& line, const uint64_t (&size)[3]) {
  char text[64];
  size_t n = 0;
  for (int i = 0; i < 3; ++i) {
    if (i > 0) text[n++] = 'x';
    char digits[20];
    size_t count = 0;
    uint64_t rest = size[i];
    do digits[count++] = static_cast<char>('0' + rest % 10);
    while ((rest /= 10) != 0);
    while (count > 0) text[n++] = digits[--count];
  }
  text[n] = 0;
  line.quoted(text);
}

void print_answer(Output& out, uint64_t index, Id device, const Query& query, int64_t argument) {
  const Reply reply = ask(device, query, argument);
  if (reply.problem) {
    Line line("unanswered");
    line.number(index).text(query.selector);
    add_argument(line, query, argument);
    line.text(reply.problem);
    return out.line(line);
  }
  if (query.type == Type::object) {
    // An object is no answer in itself; how many there are may be one.
    if (!reply.object || !responds(reply.object, "count")) return;
    Line line("fact");
    line.number(index).text(query.selector).number(send<uint64_t>(reply.object, "count"));
    return out.line(line);
  }
  Line line("answer");
  line.number(index).text(query.selector);
  add_argument(line, query, argument);
  switch (query.type) {
    case Type::boolean:
      line.truth(reply.integer != 0);
      break;
    case Type::integer:
      if (reply.is_signed) {
        line.integer(static_cast<int64_t>(reply.integer));
      } else {
        line.number(reply.integer);
      }
      break;
    case Type::structure:
      add_size(line, reply.size);
      break;
    default:
      line.quoted(reply.text);
      break;
  }
  out.line(line);
}

/// What programs that trust Metal3 do first: paravirtual devices answer nil to it. Only a device
/// itself is asked; the validation layer may end a process that asks one it thinks unable.
void print_residency_set(Output& out, uint64_t index, Id device) {
  constexpr char kSelector[] = "newResidencySetWithDescriptor:error:";
  objc_class* cls = objc_getClass("MTLResidencySetDescriptor");
  if (!cls || !is_kind_of(device, "_MTLDevice") || !responds(device, kSelector)) return;
  Id descriptor = send(send(cls, "alloc"), "init");
  if (!descriptor) return;
  Id error = nullptr;
  Id set = send(device, kSelector, descriptor, &error);
  Line line("fact");
  line.number(index).text("rset_ok").truth(set != nullptr);
  out.line(line);
  if (set) send<void>(set, "release");
  send<void>(descriptor, "release");
}

void print_device(Output& out, uint64_t index, Id device, bool is_default) {
  void* pool = objc_autoreleasePoolPush();
  Line line("device");
  line.number(index).text(class_getName(object_getClass(device))).truth(is_default);
  out.line(line);
  for (const Query& query : kQueries) {
    if (query.argument_count == 0) print_answer(out, index, device, query, 0);
    for (size_t i = 0; i < query.argument_count; ++i) {
      print_answer(out, index, device, query, query.arguments[i]);
    }
  }
  print_residency_set(out, index, device);
  objc_autoreleasePoolPop(pool);
}

/// The default device first, then the others.
void print_devices(Output& out) {
  Id first = MTLCreateSystemDefaultDevice();
  Id all = MTLCopyAllDevices();
  const uint64_t count = all ? send<uint64_t>(all, "count") : 0;
  Line line("devices");
  line.number(count).truth(first != nullptr);
  out.line(line);
  uint64_t index = 0;
  if (first) print_device(out, index++, first, true);
  for (uint64_t i = 0; i < count; ++i) {
    Id device = send(all, "objectAtIndex:", i);
    if (device && device != first) print_device(out, index++, device, false);
  }
}

int run() {
  Output out;
  Line header(wire::kHeader);
  header.text("probe").text(METALDOCTOR_VERSION);
  out.line(header);
  print_system(out);
  void* pool = objc_autoreleasePoolPush();
  print_devices(out);
  objc_autoreleasePoolPop(pool);
  Line end("end");
  end.number(out.lines());
  out.line(end);
  return out.failed() ? 1 : 0;
}

}  // namespace
}  // namespace metaldoctor::probe

// In a freestanding program main is a function like any other; the linker looks for its C name.
extern "C" int main() {
  return metaldoctor::probe::run();
}
