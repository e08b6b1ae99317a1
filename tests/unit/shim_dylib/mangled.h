#pragma once
#include <random>
#include <string>

namespace metaldoctor::shim {

/// A valid profile text with a few random edits, or random bytes.
inline std::string mangled(std::mt19937& random) {
  static const std::string alphabet = "mdp1;alproceshtn-bv:=.0123456789 \xff\t%";
  std::string text = "mdp1;all;process;host;1:1006=1;1:1007=1;3=32768;.";
  if (random() % 4 == 0) text.assign(random() % 64, 'x');
  for (unsigned edits = 1 + random() % 4; edits > 0 && !text.empty(); --edits) {
    const std::size_t at = random() % text.size();
    const char c = alphabet[random() % alphabet.size()];
    switch (random() % 3) {
      case 0:
        text[at] = c;
        break;
      case 1:
        text.insert(at, 1, c);
        break;
      default:
        text.erase(at, 1 + random() % 3);
        break;
    }
  }
  return text;
}

}  // namespace metaldoctor::shim
