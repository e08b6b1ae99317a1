#include "tools/render/branches.h"

#include <fmt/format.h>

#include <algorithm>

namespace metaldoctor {
namespace {

Json branch_json(const Branch& branch) {
  return {{"path", branch.path.id},
          {"opens", branch.path.opens},
          {"first", to_string(branch.first)},
          {"second", to_string(branch.second)},
          {"differs", branch.differs},
          {"worse", branch.is_worse},
          {"because", branch.because},
          {"gates", branch.path.gates},
          {"evidence", to_string(branch.path.evidence)}};
}

std::string_view kind_of(const Branch& branch) {
  if (branch.is_worse) return "worse";
  if (branch.differs && branch.path.side == Rule::Side::harm) return "kept from harm";
  if (branch.differs) return "differs";
  return branch.first == Truth::unknown || branch.second == Truth::unknown ? "not known" : "same";
}

void write_branch(std::string& out, const BranchComparison& comparison, const Branch& branch,
                  TextStyle style) {
  const std::string_view kind = kind_of(branch);
  out +=
      fmt::format("  {} {} [{}]\n",
                  style.paint(branch.is_worse ? TextStyle::Ink::bad : TextStyle::Ink::plain, kind),
                  printable(branch.path.id), to_string(branch.path.evidence));
  const auto line = [&](std::string_view label, std::string_view text) {
    if (!text.empty()) out += fmt::format("      {}{}\n", label, wrap(text, 8, 6 + label.size()));
  };
  line("", fmt::format("{}: {}; {}: {}", comparison.first, to_string(branch.first),
                       comparison.second, to_string(branch.second)));
  line("because ", fmt::format("{}", fmt::join(branch.because, "; ")));
  line("opens ", branch.path.opens);
  if (style.verbosity > 0) {
    line("logs ", fmt::format("{}", fmt::join(branch.path.log_lines, "; ")));
    line("source ", fmt::format("{}", fmt::join(branch.path.sources, "; ")));
  }
}

}  // namespace

Json branches_json(const BranchComparison& comparison) {
  Json json = {{"first", comparison.first},
               {"second", comparison.second},
               {"worse", comparison.count_worse()},
               {"notes", comparison.notes},
               {"paths", Json::array()}};
  for (const Branch& branch : comparison.branches) json["paths"].push_back(branch_json(branch));
  return json;
}

std::string branches_text(const BranchComparison& comparison, TextStyle style) {
  const auto& all = comparison.branches;
  const auto same = std::ranges::count_if(all, [](const Branch& b) {
    return !b.differs && b.first != Truth::unknown && b.second != Truth::unknown;
  });
  const auto differ = std::ranges::count_if(all, &Branch::differs);
  std::string out = fmt::format(
      "{} {} against {}: {} of {} path(s) worse, {} other(s) differ, {} the same, {} not known\n",
      style.paint(TextStyle::Ink::bold, "branches"), comparison.first, comparison.second,
      comparison.count_worse(), all.size(), differ - static_cast<long>(comparison.count_worse()),
      same, std::ssize(all) - same - differ);
  for (const bool worse : {true, false}) {
    for (const Branch& branch : all) {
      if (branch.is_worse != worse || (!branch.differs && style.verbosity == 0)) continue;
      write_branch(out, comparison, branch, style);
    }
  }
  for (const std::string& note : comparison.notes) out += "note: " + wrap(note, 6, 6) + "\n";
  return out + "\n";
}

}  // namespace metaldoctor
