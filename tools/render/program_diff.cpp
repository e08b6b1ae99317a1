#include "tools/render/program_diff.h"

#include <fmt/format.h>

namespace metaldoctor {
namespace {

constexpr std::string_view kKinds[] = {"question", "gate"};

std::string_view kind_of(const FindingsChange& change) {
  return kKinds[static_cast<std::size_t>(change.kind)];
}

std::string name_of(const Findings& findings) {
  const auto& image = findings.image;
  return image.member.empty() ? image.path : fmt::format("{}({})", image.path, image.member);
}

}  // namespace

Json program_diff_json(const ProgramDiff& diff) {
  Json images = Json::array();
  for (const ProgramDiffRow& row : diff) {
    Json changes = Json::array();
    for (const FindingsChange& change : row.changes) {
      changes.push_back({{"kind", kind_of(change)},
                         {"what", change.what},
                         {"first", change.first},
                         {"second", change.second}});
    }
    images.push_back({{"first", name_of(*row.first)},
                      {"second", name_of(*row.second)},
                      {"arch", row.first->image.arch},
                      {"changes", std::move(changes)},
                      {"evidence", "read"}});
  }
  return {{"schema", "metaldoctor.program-diff/1"}, {"images", std::move(images)}};
}

std::string program_diff_text(const ProgramDiff& diff, TextStyle style) {
  std::string out;
  for (const ProgramDiffRow& row : diff) {
    out += fmt::format("{} {} against {}: {} change(s) [read]\n",
                       style.paint(TextStyle::Ink::bold, row.first->image.arch),
                       printable(name_of(*row.first)), printable(name_of(*row.second)),
                       row.changes.size());
    for (const FindingsChange& change : row.changes) {
      const std::string_view sign = change.first == 0 ? "+" : change.second == 0 ? "-" : "~";
      const std::string head = fmt::format("  {} {} ", sign, kind_of(change));
      out += head + wrap(change.what, 6, head.size());
      out += fmt::format("  ({} to {})\n", change.first, change.second);
    }
  }
  return out;
}

}  // namespace metaldoctor
