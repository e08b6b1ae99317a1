#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "scanners/simulator/abi_tables.h"
#include "scanners/simulator/call_access.h"

namespace metaldoctor {
namespace {

std::uint64_t sign_extended(int value) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
}
char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
/// Writes a C string, at most `room` bytes with its end.
void put(Call& call, std::uint64_t to, std::string_view text, std::uint64_t room) {
  if (room == 0) return;
  text = text.substr(0, room - 1);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  if (!call.process.memory.write(to, {bytes, text.size()})) call.fault("cannot be written", to);
  call.store<char>(to + text.size(), 0);
}

void do_strlen(Call& call) {
  call.returns(call.text(0).size());
}
void do_strnlen(Call& call) {
  GuestBytes bytes(call, call.arg(0));
  std::uint64_t size = 0;
  while (size < call.arg(1) && bytes.next() && bytes.ok()) ++size;
  call.returns(size);
}
template <bool Fold, bool Bounded>
void do_compare(Call& call) {
  const std::uint64_t limit = Bounded ? call.arg(2) : ~std::uint64_t{0};
  GuestBytes first(call, call.arg(0)), second(call, call.arg(1));
  int difference = 0;
  for (std::uint64_t i = 0; i < limit && first.ok(); ++i) {
    char a = static_cast<char>(first.next()), b = static_cast<char>(second.next());
    if (Fold) {
      a = lower(a);
      b = lower(b);
    }
    difference = static_cast<unsigned char>(a) - static_cast<unsigned char>(b);
    if (difference != 0 || a == 0) break;
  }
  call.returns(sign_extended(difference));
}
void do_strcpy(Call& call) {
  put(call, call.arg(0), call.text(1), ~std::uint64_t{0});
  call.returns(call.arg(0));
}
void do_stpcpy(Call& call) {
  const std::string text = call.text(1);
  put(call, call.arg(0), text, ~std::uint64_t{0});
  call.returns(call.arg(0) + text.size());
}
void do_strncpy(Call& call) {
  for (std::uint64_t i = 0, ended = 0; i < call.arg(2) && !call.process.stopped(); ++i) {
    const char c = ended ? '\0' : call.load<char>(call.arg(1) + i);
    call.store(call.arg(0) + i, c);
    if (c == 0) ended = 1;
  }
  call.returns(call.arg(0));
}
void do_strlcpy(Call& call) {
  const std::string text = call.text(1);
  put(call, call.arg(0), text, call.arg(2));
  call.returns(text.size());
}
void do_strcat(Call& call) {
  put(call, call.arg(0) + call.text(0).size(), call.text(1), ~std::uint64_t{0});
  call.returns(call.arg(0));
}
void do_strlcat(Call& call) {
  const std::string first = call.text(0), second = call.text(1);
  if (first.size() < call.arg(2))
    put(call, call.arg(0) + first.size(), second, call.arg(2) - first.size());
  call.returns(std::min<std::uint64_t>(first.size(), call.arg(2)) + second.size());
}
void do_strchr(Call& call) {
  const std::string text = call.text(0);
  const auto at =
      std::string_view(text.c_str(), text.size() + 1).find(static_cast<char>(call.arg(1)));
  call.returns(at == std::string::npos ? 0 : call.arg(0) + at);
}
void do_strrchr(Call& call) {
  const std::string text = call.text(0);
  const auto at =
      std::string_view(text.c_str(), text.size() + 1).rfind(static_cast<char>(call.arg(1)));
  call.returns(at == std::string::npos ? 0 : call.arg(0) + at);
}
void do_strstr(Call& call) {
  const auto at = call.text(0).find(call.text(1));
  call.returns(at == std::string::npos ? 0 : call.arg(0) + at);
}
void do_strdup(Call& call) {
  call.returns(call.process.allocate_text(call.text(0)));
}
template <bool Accept>
void do_span(Call& call) {
  const std::string text = call.text(0), set = call.text(1);
  const auto at = Accept ? text.find_first_not_of(set) : text.find_first_of(set);
  call.returns(at == std::string::npos ? text.size() : at);
}

template <typename T, T (*Parse)(const char*, char**, int)>
void do_strto(Call& call) {
  const std::string text = call.text(0);
  char* end = nullptr;
  const int base = static_cast<int>(call.arg(2));
  if (base < 0 || base == 1 || base > 36) return call.returns(0);
  const T value = Parse(text.c_str(), &end, base);
  if (call.arg(1)) call.store<std::uint64_t>(call.arg(1), call.arg(0) + (end - text.c_str()));
  call.returns(static_cast<std::uint64_t>(value));
}
void do_strtod(Call& call) {
  const std::string text = call.text(0);
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (call.arg(1)) call.store<std::uint64_t>(call.arg(1), call.arg(0) + (end - text.c_str()));
  call.returns_real(value);
}
void do_atoi(Call& call) {
  call.returns(sign_extended(static_cast<int>(std::strtol(call.text(0).c_str(), nullptr, 10))));
}
void do_atol(Call& call) {
  call.returns(static_cast<std::uint64_t>(std::strtoll(call.text(0).c_str(), nullptr, 10)));
}
void do_atof(Call& call) {
  call.returns_real(std::strtod(call.text(0).c_str(), nullptr));
}

template <char First, char Last>
void do_is_range(Call& call) {
  call.returns(call.arg(0) >= static_cast<unsigned char>(First) &&
               call.arg(0) <= static_cast<unsigned char>(Last));
}
void do_isspace(Call& call) {
  call.returns(call.arg(0) == ' ' || (call.arg(0) >= 9 && call.arg(0) <= 13));
}
void do_tolower(Call& call) {
  const std::uint64_t c = call.arg(0);
  call.returns(c >= 'A' && c <= 'Z' ? c + 32 : c);
}
void do_toupper(Call& call) {
  const std::uint64_t c = call.arg(0);
  call.returns(c >= 'a' && c <= 'z' ? c - 32 : c);
}

/// Insertion by halves: the comparator is the program's and may answer anything.
void do_qsort(Call& call) {
  Process& process = call.process;
  const std::uint64_t base = call.arg(0), count = call.arg(1), size = call.arg(2),
                      less = call.arg(3);
  if (count < 2 || size == 0 || count > (std::uint64_t{1} << 20)) return;
  const std::uint64_t spare = process.allocate(size);
  for (std::uint64_t i = 1; i < count && !process.stopped(); ++i) {
    if (!process.memory.move(spare, base + i * size, size))
      return call.fault("cannot be sorted", base);
    std::uint64_t low = 0, high = i;
    while (low < high && !process.stopped()) {
      const std::uint64_t middle = (low + high) / 2;
      const auto order = process.call(less, {spare, base + middle * size});
      if (static_cast<std::int32_t>(order.value_or(0)) < 0)
        high = middle;
      else
        low = middle + 1;
    }
    process.memory.move(base + (low + 1) * size, base + low * size, (i - low) * size);
    process.memory.move(base + low * size, spare, size);
  }
  process.heap.release(spare);
}

constexpr auto exact = Fidelity::exact;

constexpr HostFunction functions[] = {
    {"_strlen", exact, do_strlen},
    {"_strnlen", exact, do_strnlen},
    {"_strcmp", exact, do_compare<false, false>},
    {"_strncmp", exact, do_compare<false, true>},
    {"_strcasecmp", exact, do_compare<true, false>},
    {"_strncasecmp", exact, do_compare<true, true>},
    {"_strcpy", exact, do_strcpy},
    {"___strcpy_chk", exact, do_strcpy},
    {"_stpcpy", exact, do_stpcpy},
    {"_strncpy", exact, do_strncpy},
    {"___strncpy_chk", exact, do_strncpy},
    {"_strlcpy", exact, do_strlcpy},
    {"___strlcpy_chk", exact, do_strlcpy},
    {"_strcat", exact, do_strcat},
    {"___strcat_chk", exact, do_strcat},
    {"_strlcat", exact, do_strlcat},
    {"___strlcat_chk", exact, do_strlcat},
    {"_strchr", exact, do_strchr},
    {"_strrchr", exact, do_strrchr},
    {"_strstr", exact, do_strstr},
    {"_strdup", exact, do_strdup},
    {"_strspn", exact, do_span<true>},
    {"_strcspn", exact, do_span<false>},
    {"_strtol", exact, do_strto<long, std::strtol>},
    {"_strtoll", exact, do_strto<long long, std::strtoll>},
    {"_strtoul", exact, do_strto<unsigned long, std::strtoul>},
    {"_strtoull", exact, do_strto<unsigned long long, std::strtoull>},
    {"_strtod", exact, do_strtod},
    {"_atoi", exact, do_atoi},
    {"_atol", exact, do_atol},
    {"_atoll", exact, do_atol},
    {"_atof", exact, do_atof},
    {"_isdigit", exact, do_is_range<'0', '9'>},
    {"_isspace", exact, do_isspace},
    {"_tolower", exact, do_tolower},
    {"___tolower", exact, do_tolower},
    {"_toupper", exact, do_toupper},
    {"___toupper", exact, do_toupper},
    {"___maskrune", Fidelity::assumed},
    {"_qsort", exact, do_qsort},
};

}  // namespace

std::span<const HostFunction> string_functions() {
  return functions;
}

}  // namespace metaldoctor
