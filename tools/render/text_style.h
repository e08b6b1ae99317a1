#pragma once
#include <string>
#include <string_view>

namespace metaldoctor {

/// How text is written: how much, and whether with colour.
struct TextStyle {
  int verbosity = 0;  ///< 0 result, 1 with evidence and sources, 2 with everything that agreed
  bool color = false;

  enum class Ink { plain, bold, good, bad, warn, dim };
  /// `text` in that ink, or unchanged without colour.
  std::string paint(Ink ink, std::string_view text) const;
};

/// Wraps at 100 columns: the first line starts in column `start`, the others are indented by
/// `indent` spaces; a word longer than a line stays whole. Control characters of the input are
/// shown as '?': text may come from a file.
std::string wrap(std::string_view text, std::size_t indent, std::size_t start);
inline std::string wrap(std::string_view text, std::size_t indent) {
  return wrap(text, indent, indent);
}
/// Makes text from a file safe to print on one line.
std::string printable(std::string_view text);

}  // namespace metaldoctor
