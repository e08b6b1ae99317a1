#include "tools/render/text_style.h"

#include <algorithm>
#include <array>

namespace metaldoctor {
namespace {

constexpr std::array<std::pair<TextStyle::Ink, std::string_view>, 6> codes = {{
    {TextStyle::Ink::plain, ""},
    {TextStyle::Ink::bold, "\033[1m"},
    {TextStyle::Ink::good, "\033[32m"},
    {TextStyle::Ink::bad, "\033[31m"},
    {TextStyle::Ink::warn, "\033[33m"},
    {TextStyle::Ink::dim, "\033[2m"},
}};

}  // namespace

std::string TextStyle::paint(Ink ink, std::string_view text) const {
  if (!color || ink == Ink::plain) return std::string(text);
  const auto* code = std::ranges::find(codes, ink, &std::pair<Ink, std::string_view>::first);
  return std::string(code->second).append(text).append("\033[0m");
}

std::string printable(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    const auto u = static_cast<unsigned char>(c);
    if (u < 0x20 || u == 0x7f) c = c == '\n' || c == '\t' ? ' ' : '?';
  }
  return out;
}

std::string wrap(std::string_view text, std::size_t indent, std::size_t start) {
  constexpr std::size_t width = 100;
  const std::string clean = printable(text);
  std::string out;
  std::size_t column = start;
  bool line_start = true;
  for (std::size_t pos = 0; pos < clean.size();) {
    const std::size_t begin = clean.find_first_not_of(' ', pos);
    if (begin == std::string::npos) break;
    const std::size_t end = std::min(clean.find(' ', begin), clean.size());
    const std::size_t length = end - begin;
    if (!line_start && column + 1 + length > width) {
      out.append("\n").append(indent, ' ');
      column = indent;
      line_start = true;
    }
    if (!line_start) {
      out.push_back(' ');
      ++column;
    }
    out.append(clean, begin, length);
    column += length;
    line_start = false;
    pos = end;
  }
  return out;
}

}  // namespace metaldoctor
