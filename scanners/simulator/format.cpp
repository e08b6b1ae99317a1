#include <fmt/format.h>

#include <cstdio>

#include "scanners/simulator/call_access.h"

namespace metaldoctor {
namespace {

constexpr std::size_t max_text = std::size_t{1} << 20;
constexpr long max_width = 4096;

/// One conversion: "%-08.3lld" without its value.
struct Conversion {
  std::string flags;
  long width = -1, precision = -1;
  int size = 4;  ///< bytes of an integer
  char kind = 0;
};

long number(std::string_view format, std::size_t& at) {
  long value = 0;
  while (at < format.size() && format[at] >= '0' && format[at] <= '9')
    value = std::min(max_width, value * 10 + (format[at++] - '0'));
  return value;
}

Conversion read_conversion(std::string_view format, std::size_t& at, VarArgs& arguments) {
  Conversion read;
  const auto count = [&]() -> long {
    if (at < format.size() && format[at] == '*') {
      ++at;
      const long value = static_cast<std::int32_t>(arguments.integer());
      return std::max(-max_width, std::min(max_width, value));
    }
    return number(format, at);
  };
  while (at < format.size() &&
         std::string_view("-+ #0'").find(format[at]) != std::string_view::npos)
    read.flags += format[at++];
  if (at < format.size() && (format[at] == '*' || (format[at] >= '1' && format[at] <= '9')))
    read.width = count();
  if (read.width < -1) {
    read.flags += '-';
    read.width = -read.width;
  }
  if (at < format.size() && format[at] == '.') {
    ++at;
    read.precision = count();
  }
  for (; at < format.size(); ++at) {
    const char c = format[at];
    if (c == 'h')
      read.size = read.size == 2 ? 1 : 2;
    else if (c == 'l' || c == 'q' || c == 'j' || c == 'z' || c == 't' || c == 'L')
      read.size = 8;
    else
      break;
  }
  if (at < format.size()) read.kind = format[at++];
  return read;
}

/// The host's printf does the digits; the conversion is written anew so that nothing but what was
/// understood reaches it.
template <typename T>
std::string with_host(const Conversion& c, std::string_view length, char kind, T value) {
  std::string spec = "%" + c.flags;
  if (c.width >= 0) spec += std::to_string(c.width);
  if (c.precision >= 0) spec += "." + std::to_string(c.precision);
  spec += length;
  spec += kind;
  std::string out(static_cast<std::size_t>(2 * max_width + 400), '\0');
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wformat-nonliteral"
  const int size = std::snprintf(out.data(), out.size(), spec.c_str(), value);
#pragma clang diagnostic pop
  out.resize(size < 0 ? 0 : std::min(static_cast<std::size_t>(size), out.size() - 1));
  return out;
}

std::string integer(const Conversion& c, std::uint64_t value) {
  const int unused = 64 - c.size * 8;
  if (c.kind == 'd' || c.kind == 'i') {
    const auto number = static_cast<std::int64_t>(value << unused) >> unused;
    return with_host(c, "ll", 'd', static_cast<long long>(number));
  }
  const std::uint64_t number = value << unused >> unused;
  const char kind = c.kind == 'U' ? 'u' : c.kind;
  return with_host(c, "ll", kind, static_cast<unsigned long long>(number));
}

std::string padded(const Conversion& c, std::string text) {
  const auto width = static_cast<std::size_t>(std::max(0L, c.width));
  if (text.size() >= width) return text;
  const std::string blanks(width - text.size(), ' ');
  return c.flags.find('-') != std::string::npos ? text + blanks : blanks + text;
}

/// At most `precision` bytes are read, so that the text need not be terminated.
std::string text_argument(Process& process, const Conversion& c, std::uint64_t address) {
  if (address == 0) return "(null)";
  if (c.precision < 0) {
    auto text = process.memory.cstring(address);
    if (!text) process.stop("bad-argument", "printf: %s of what is no string", process.caller());
    return text.value_or("");
  }
  std::string text;
  for (long i = 0; i < c.precision; ++i) {
    const auto byte = process.memory.load<char>(address + static_cast<std::uint64_t>(i));
    if (!byte || *byte == 0) break;
    text += *byte;
  }
  return text;
}

std::string converted(Process& process, const Conversion& c, VarArgs& arguments) {
  switch (c.kind) {
    case 'd':
    case 'i':
    case 'u':
    case 'U':
    case 'x':
    case 'X':
    case 'o':
      return integer(c, arguments.integer());
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case 'a':
    case 'A':
      return with_host(c, "", c.kind, arguments.real());
    case 'c':
      return padded(c, std::string(1, static_cast<char>(arguments.integer())));
    case 's':
      return padded(c, text_argument(process, c, arguments.integer()));
    case 'p':
      return padded(c, fmt::format("{:#x}", arguments.integer()));
    case '@': {
      const std::uint64_t object = arguments.integer();
      if (object == 0) return "(null)";
      const auto text = process.string_of(object);
      return text ? *text : fmt::format("<{}>", process.name_of(object));
    }
    case '%':
      return "%";
    default:
      process.assume(fmt::format("printf: conversion '%{}' was printed as it is", c.kind));
      return fmt::format("%{}", c.kind);
  }
}

}  // namespace

std::string format_text(Process& process, std::string_view format, VarArgs& arguments) {
  std::string out;
  for (std::size_t at = 0; at < format.size() && out.size() < max_text;) {
    if (format[at] != '%') {
      out += format[at++];
      continue;
    }
    ++at;
    const Conversion conversion = read_conversion(format, at, arguments);
    if (conversion.kind == 0) break;
    out += converted(process, conversion, arguments);
  }
  return out;
}

}  // namespace metaldoctor
