#include <fmt/format.h>

#include "scanners/simulator/abi_tables.h"
#include "scanners/simulator/call_access.h"

namespace metaldoctor {
namespace {

constexpr std::uint64_t minus_one = ~std::uint64_t{0};
constexpr std::uint64_t descriptor_at = 0x12;  // FILE::_file, see make_datum
constexpr std::size_t max_file = std::size_t{1} << 20;
enum Errno : std::int32_t { enoent = 2, ebadf = 9, einval = 22 };
enum Flags : std::uint64_t { write_only = 1, read_write = 2, truncate = 0x400, create = 0x200 };

void fail_with(Call& call, Errno error) {
  call.process.memory.store<std::int32_t>(call.process.errno_address, error, true);
  call.returns(minus_one);
}

/// Standard streams go to the log, files to the trace. False: no such descriptor.
bool put(Process& process, int descriptor, std::string_view text) {
  if (descriptor == 1 || descriptor == 2) {
    process.print(descriptor == 1 ? "stdout" : "stderr", text);
    return true;
  }
  const auto file = process.open_files.find(descriptor);
  if (file == process.open_files.end()) return false;
  const auto written = process.files_written.find(file->second.first);
  if (written == process.files_written.end()) return false;
  if (written->second.size() + text.size() > max_file) {
    process.stop("budget-log", "a file grows beyond what is kept", process.caller());
    return false;
  }
  written->second += text;
  return true;
}

int descriptor_of(Call& call, std::uint64_t file) {
  return call.load<std::int16_t>(file + descriptor_at);
}

std::optional<std::string> bytes_of(Call& call, std::uint64_t address, std::uint64_t size) {
  constexpr std::uint64_t most = std::uint64_t{16} << 20;
  if (size > most) return std::nullopt;
  std::string bytes(size, '\0');
  if (!call.process.memory.read(address, {reinterpret_cast<std::uint8_t*>(bytes.data()), size}))
    return std::nullopt;
  return bytes;
}

void print_to(Call& call, int descriptor, unsigned fixed, std::string_view format) {
  VarArgs arguments = VarArgs::of_call(call, fixed);
  const std::string text = format_text(call.process, format, arguments);
  put(call.process, descriptor, text);
  call.returns(text.size());
}

void store_text(Call& call, const std::string& text, std::uint64_t to, std::uint64_t room) {
  if (room > 0) {
    const std::string_view cut = std::string_view(text).substr(0, room - 1);
    if (!call.process.memory.write(to,
                                   {reinterpret_cast<const std::uint8_t*>(cut.data()), cut.size()}))
      call.fault("cannot be written", to);
    call.store<char>(to + cut.size(), 0);
  }
  call.returns(text.size());
}

void do_printf(Call& call) {
  print_to(call, 1, 1, call.text(0));
}
void do_fprintf(Call& call) {
  print_to(call, descriptor_of(call, call.arg(0)), 2, call.text(1));
}
void do_dprintf(Call& call) {
  print_to(call, static_cast<int>(call.arg(0)), 2, call.text(1));
}
void do_vfprintf(Call& call) {
  VarArgs arguments = VarArgs::of_list(call.process, call.arg(2));
  const std::string text = format_text(call.process, call.text(1), arguments);
  put(call.process, descriptor_of(call, call.arg(0)), text);
  call.returns(text.size());
}
void do_snprintf(Call& call) {
  VarArgs arguments = VarArgs::of_call(call, 3);
  store_text(call, format_text(call.process, call.text(2), arguments), call.arg(0), call.arg(1));
}
/// __snprintf_chk(to, size, flag, room, format, ...)
void do_snprintf_chk(Call& call) {
  VarArgs arguments = VarArgs::of_call(call, 5);
  store_text(call, format_text(call.process, call.text(4), arguments), call.arg(0), call.arg(1));
}
void do_sprintf(Call& call) {
  VarArgs arguments = VarArgs::of_call(call, 2);
  store_text(call, format_text(call.process, call.text(1), arguments), call.arg(0), minus_one);
}
void do_vsnprintf(Call& call) {
  VarArgs arguments = VarArgs::of_list(call.process, call.arg(3));
  store_text(call, format_text(call.process, call.text(2), arguments), call.arg(0), call.arg(1));
}
void do_vsnprintf_chk(Call& call) {
  VarArgs arguments = VarArgs::of_list(call.process, call.arg(5));
  store_text(call, format_text(call.process, call.text(4), arguments), call.arg(0), call.arg(1));
}
/// asprintf(char **result, const char *format, ...)
void do_asprintf(Call& call) {
  VarArgs arguments = VarArgs::of_call(call, 2);
  const std::string text = format_text(call.process, call.text(1), arguments);
  call.store(call.arg(0), call.process.allocate_text(text));
  call.returns(text.size());
}
void do_puts(Call& call) {
  put(call.process, 1, call.text(0) + "\n");
  call.returns(0);
}
void do_fputs(Call& call) {
  put(call.process, descriptor_of(call, call.arg(1)), call.text(0));
  call.returns(0);
}
void do_putchar(Call& call) {
  put(call.process, 1, std::string(1, static_cast<char>(call.arg(0))));
  call.returns(call.arg(0));
}
void do_fputc(Call& call) {
  put(call.process, descriptor_of(call, call.arg(1)),
      std::string(1, static_cast<char>(call.arg(0))));
  call.returns(call.arg(0));
}
void do_fwrite(Call& call) {
  std::uint64_t size = 0;
  const bool over = __builtin_mul_overflow(call.arg(1), call.arg(2), &size);
  const auto bytes = over ? std::nullopt : bytes_of(call, call.arg(0), size);
  if (!bytes) return call.fault("cannot be read", call.arg(0));
  put(call.process, descriptor_of(call, call.arg(3)), *bytes);
  call.returns(call.arg(2));
}
void do_write(Call& call) {
  const auto bytes = bytes_of(call, call.arg(1), call.arg(2));
  if (!bytes) return fail_with(call, einval);
  if (!put(call.process, static_cast<int>(call.arg(0)), *bytes)) return fail_with(call, ebadf);
  call.returns(call.arg(2));
}
/// struct iovec {base, length}
void do_writev(Call& call) {
  std::uint64_t total = 0;
  constexpr std::uint64_t most = 1024;
  for (std::uint64_t i = 0; i < std::min(call.arg(2), most) && !call.process.stopped(); ++i) {
    const auto bytes = bytes_of(call, call.load<std::uint64_t>(call.arg(1) + i * 16),
                                call.load<std::uint64_t>(call.arg(1) + i * 16 + 8));
    if (!bytes || !put(call.process, static_cast<int>(call.arg(0)), *bytes))
      return fail_with(call, ebadf);
    total += bytes->size();
  }
  call.returns(total);
}

int open_file(Process& process, const std::string& path, std::uint64_t flags) {
  const bool writes = flags & (write_only | read_write | create);
  if (!writes && !process.request.files.contains(path) && !process.files_written.contains(path))
    return -1;
  constexpr std::size_t most = 256;
  if (process.open_files.size() >= most || process.files_written.size() >= most) return -1;
  if (writes) {
    std::string& file = process.files_written[path];
    if (flags & truncate) file.clear();
  }
  int descriptor = 3;
  while (process.open_files.contains(descriptor)) ++descriptor;
  process.open_files[descriptor] = {path, 0};
  return descriptor;
}
void do_open(Call& call) {
  const int descriptor = open_file(call.process, call.text(0), call.arg(1));
  if (descriptor < 0) return fail_with(call, enoent);
  call.returns(static_cast<std::uint64_t>(descriptor));
}
void do_fopen(Call& call) {
  const std::string mode = call.text(1);
  const std::uint64_t flags = mode.starts_with("r")   ? 0
                              : mode.starts_with("w") ? write_only | truncate
                                                      : write_only;
  const int descriptor = open_file(call.process, call.text(0), flags);
  if (descriptor < 0) {
    fail_with(call, enoent);
    return call.returns(0);
  }
  const std::uint64_t file = call.process.objc.reserve(0x98);
  call.process.memory.store(file + descriptor_at, static_cast<std::int16_t>(descriptor), true);
  call.returns(file);
}
std::uint64_t read_file(Call& call, int descriptor, std::uint64_t to, std::uint64_t size) {
  Process& process = call.process;
  const auto open = process.open_files.find(descriptor);
  if (open == process.open_files.end()) return minus_one;
  auto& [path, position] = open->second;
  const auto given = process.request.files.find(path);
  const auto made = process.files_written.find(path);
  const bool own = made != process.files_written.end();
  if (!own && given == process.request.files.end()) return 0;
  const std::string& text = own ? made->second : given->second;
  const std::string_view part =
      std::string_view(text).substr(std::min<std::size_t>(position, text.size()), size);
  if (!process.memory.write(to, {reinterpret_cast<const std::uint8_t*>(part.data()), part.size()}))
    call.fault("cannot be written", to);
  position += part.size();
  return part.size();
}
void do_read(Call& call) {
  const std::uint64_t count =
      read_file(call, static_cast<int>(call.arg(0)), call.arg(1), call.arg(2));
  if (count == minus_one) return fail_with(call, ebadf);
  call.returns(count);
}
void do_fread(Call& call) {
  std::uint64_t size = 0;
  if (call.arg(1) == 0 || __builtin_mul_overflow(call.arg(1), call.arg(2), &size))
    return call.returns(0);
  const std::uint64_t count = read_file(call, descriptor_of(call, call.arg(3)), call.arg(0), size);
  call.returns(count == minus_one ? 0 : count / call.arg(1));
}
void do_close(Call& call) {
  if (!call.process.open_files.erase(static_cast<int>(call.arg(0)))) return fail_with(call, ebadf);
  call.returns(0);
}
void do_fclose(Call& call) {
  call.process.open_files.erase(descriptor_of(call, call.arg(0)));
  call.returns(0);
}
void do_access(Call& call) {
  if (!call.process.request.files.contains(call.text(0))) return fail_with(call, enoent);
  call.returns(0);
}
void do_log(Call& call) {  // NSLog
  const auto format = call.process.string_of(call.arg(0));
  VarArgs arguments = VarArgs::of_call(call, 1);
  call.process.print("NSLog", format_text(call.process, format.value_or(""), arguments) + "\n");
}

constexpr auto exact = Fidelity::exact;
constexpr auto constant = Fidelity::constant;

constexpr HostFunction functions[] = {
    {"_printf", exact, do_printf},
    {"_fprintf", exact, do_fprintf},
    {"_dprintf", exact, do_dprintf},
    {"_vfprintf", exact, do_vfprintf},
    {"_snprintf", exact, do_snprintf},
    {"___snprintf_chk", exact, do_snprintf_chk},
    {"_sprintf", exact, do_sprintf},
    {"_vsnprintf", exact, do_vsnprintf},
    {"___vsnprintf_chk", exact, do_vsnprintf_chk},
    {"_asprintf", exact, do_asprintf},
    {"_puts", exact, do_puts},
    {"_fputs", exact, do_fputs},
    {"_putchar", exact, do_putchar},
    {"_fputc", exact, do_fputc},
    {"_putc", exact, do_fputc},
    {"_fwrite", exact, do_fwrite},
    {"_write", exact, do_write},
    {"_write$NOCANCEL", exact, do_write},
    {"_writev", exact, do_writev},
    {"_open", exact, do_open},
    {"_open$NOCANCEL", exact, do_open},
    {"_fopen", exact, do_fopen},
    {"_fopen$DARWIN_EXTSN", exact, do_fopen},
    {"_read", exact, do_read},
    {"_fread", exact, do_fread},
    {"_close", exact, do_close},
    {"_close$NOCANCEL", exact, do_close},
    {"_fclose", exact, do_fclose},
    {"_access", exact, do_access},
    {"_fflush", constant},
    {"_setvbuf", constant},
    {"_fcntl", constant},
    {"_fsync", constant},
    {"_isatty", constant},
    {"_flock", constant},
    {"_umask", constant, nullptr, 022},
    {"_NSLog", exact, do_log},
    {"_os_log_type_enabled", constant},
};

}  // namespace

std::span<const HostFunction> stdio_functions() {
  return functions;
}

}  // namespace metaldoctor
