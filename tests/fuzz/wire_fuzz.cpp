// Any bytes as probe output and as a journal. The reader checks each line, so a mutated text would
// never get past it: the checks are mended first, and what is read must become a valid document.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "scanners/device/wire_reader.h"

using namespace metaldoctor;

static std::string mended(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (const std::size_t tab = line.rfind('\t'); tab != line.npos) {
      char digits[9];
      std::snprintf(digits, sizeof(digits), "%08x", wire::check(line.data(), tab));
      line.replace(tab + 1, line.npos, digits);
    }
    out += line + "\n";
  }
  return out;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Tables tables = *Tables::embedded();
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const std::string& text : {std::string(bytes), mended(bytes)}) {
    (void)read_journal(tables, text, "fuzz");
    const auto output = read_probe(tables, text, "fuzz");
    if (!output) continue;
    for (Capture capture : output->devices) {
      (void)to_json(capture).dump();
      capture.unknown.clear();  // a row a question, the same in every run: slow to validate
      if (!read_capture(tables, to_json(capture).dump(), "fuzz")) std::abort();
    }
  }
  return 0;
}
