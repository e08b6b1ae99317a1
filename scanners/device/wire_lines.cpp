#include "scanners/device/wire_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "scanners/device/log_values.h"

namespace metaldoctor {
namespace {

constexpr std::size_t kLargest = std::size_t{16} << 20;
constexpr std::size_t kMostDamage = 100;
constexpr std::size_t kCheckDigits = 8;

template <typename T>
bool reads_as(std::string_view text, T& out, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, base);
  return error == std::errc{} && end == text.data() + text.size() && !text.empty();
}

bool is_truth(std::string_view text) {
  return text == "yes" || text == "no";
}

/// A decimal integer of up to 64 bits, signed or not.
bool is_integer(std::string_view text) {
  std::int64_t number = 0;
  std::uint64_t large = 0;
  return reads_as(text, number) || reads_as(text, large);
}

bool fits(wire::Field field, std::string_view text) {
  std::uint64_t number = 0;
  std::int64_t argument = 0;
  switch (field) {
    case wire::Field::none:
      return false;
    case wire::Field::text:
      return true;
    case wire::Field::number:
      return reads_as(text, number);
    case wire::Field::argument:
      return text == "-" || reads_as(text, argument);
    case wire::Field::truth:
      return is_truth(text);
    case wire::Field::value:
      return is_truth(text) || text.starts_with('\'') || is_integer(text);
  }
  return false;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == text.npos) return parts;
    text.remove_prefix(at + 1);
  }
}

const wire::Record* find_record(std::string_view name) {
  const auto* found = std::ranges::find_if(
      wire::kRecords, [&](const wire::Record& record) { return name == record.name; });
  return found == std::end(wire::kRecords) ? nullptr : found;
}

/// What is wrong with a line, or empty and `out` is filled.
std::string read_line(std::string_view text, WireLine& out) {
  const std::size_t end = text.rfind('\t');
  std::uint32_t sum = 0;
  if (end == text.npos || text.size() - end - 1 != kCheckDigits ||
      !reads_as(text.substr(end + 1), sum, 16)) {
    return "the line does not end in its check";
  }
  text = text.substr(0, end);
  if (wire::check(text.data(), text.size()) != sum) return "the check of the line is wrong";
  if (std::ranges::any_of(text, [](char c) { return c != '\t' && (c < 0x20 || c > 0x7e); })) {
    return "a byte that the format escapes is not escaped";
  }
  std::vector<std::string_view> parts = split(text, '\t');
  out.record = find_record(parts.front());
  if (!out.record) return "there is no such record";
  parts.erase(parts.begin());
  const auto* fields = out.record->fields;
  const auto wanted = static_cast<std::size_t>(
      std::find(fields, std::end(out.record->fields), wire::Field::none) - fields);
  if (parts.size() != wanted) {
    return fmt::format("{} fields, expected {}", parts.size(), wanted);
  }
  for (std::size_t i = 0; i < wanted; ++i) {
    if (!fits(fields[i], parts[i])) return fmt::format("field {} is malformed", i + 1);
  }
  out.fields = std::move(parts);
  return {};
}

std::string decoded(std::string_view text) {
  std::string out;
  const bool was_cut = text.ends_with("%+");
  if (was_cut) text.remove_suffix(2);
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::uint8_t byte = 0;
    if (text[i] == '%' && reads_as(text.substr(i + 1, 2), byte, 16) && text.size() - i > 2) {
      out.push_back(static_cast<char>(byte));
      i += 2;
    } else {
      out.push_back(text[i]);
    }
  }
  // Bytes that cannot be printed stay escaped, so that nothing of them reaches a terminal or JSON.
  if (!out.empty() && !is_printable(out)) out = text;
  return was_cut ? out + "..." : out;
}

/// Where the line of the header begins; npos without one.
std::size_t header_at(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";  // some editors put it before UTF-8
  constexpr std::size_t kFarthest = std::size_t{64} << 10;
  std::size_t at = text.starts_with(kMark) ? kMark.size() : 0;
  while (at < std::min(text.size(), kFarthest)) {
    if (text.substr(at).starts_with(wire::kAnyHeader)) return at;
    const std::size_t end = text.find('\n', at);
    if (end == text.npos) break;
    at = end + 1;
  }
  return text.npos;
}

Result<std::string_view> check_header(std::string_view text, std::string_view name) {
  const std::size_t at = header_at(text);
  const std::string_view rest = at == text.npos ? std::string_view{} : text.substr(at);
  const std::string_view first = rest.substr(0, rest.find('\n'));
  const std::string_view magic = first.substr(0, first.find('\t'));
  if (at == text.npos) {
    return fail(Fault::input, "wire-header", fmt::format("{}:1", name),
                fmt::format("expected a line that begins with '{}'", wire::kHeader),
                "give the file as metal-probe or the journal wrote it");
  }
  if (magic != wire::kHeader) {
    return fail(Fault::input, "wire-version", fmt::format("{}:1", name),
                fmt::format("this reads '{}' and no other version", wire::kHeader),
                "use metal-probe and metaldoctor of the same release");
  }
  return magic;
}

}  // namespace

std::string WireLine::text(std::size_t field) const {
  return decoded(fields[field]);
}

std::uint64_t WireLine::number_at(std::size_t field) const {
  std::uint64_t found = 0;
  reads_as(fields[field], found);
  return found;
}

std::vector<std::int64_t> WireLine::arguments(std::size_t field) const {
  std::int64_t argument = 0;
  if (!reads_as(fields[field], argument)) return {};
  return {argument};
}

Value WireLine::value(std::size_t field) const {
  const std::string_view escaped = fields[field];
  if (is_truth(escaped)) return truth(field);
  if (escaped.starts_with('\'')) return decoded(escaped.substr(1));
  std::int64_t integer = 0;
  return reads_as(escaped, integer) ? Value{integer} : Value{};
}

bool is_wire(std::string_view text) {
  return header_at(text) != text.npos;
}

Result<WireText> read_wire(std::string_view text, std::string_view producer,
                           std::string_view name) {
  if (text.size() > kLargest) {
    return fail(Fault::input, "wire-size", std::string(name),
                fmt::format("{} bytes, at most {} are read", text.size(), kLargest));
  }
  if (auto header = check_header(text, name); !header) return tl::unexpected(header.error());
  if (text.starts_with('\xef')) text.remove_prefix(header_at(text));
  WireText out;
  std::size_t number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    WireLine read;
    read.number = number;
    std::string problem = read_line(line, read);
    if (problem.empty() && read.is(wire::kHeader)) {
      if (read.text(0) != producer) {
        return fail(Fault::input, "wire-producer", fmt::format("{}:{}", name, number),
                    fmt::format("written by '{}', expected '{}'", read.text(0), producer));
      }
      out.version = read.text(1);
      out.headers.push_back(number);
    } else if (problem.empty()) {
      out.lines.push_back(std::move(read));
    } else if (++out.damaged_count <= kMostDamage) {
      out.damaged.push_back({number, std::move(problem)});
    }
  }
  if (out.lines.empty() && out.version.empty()) {
    return fail(Fault::input, "wire-damaged", std::string(name), "no line of it is whole",
                "tabs are part of the format: copy the file, not text from a terminal");
  }
  return out;
}

}  // namespace metaldoctor
