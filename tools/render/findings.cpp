#include "tools/render/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "tools/render/diagnosis.h"

namespace metaldoctor {
namespace {

Json program_json(const RecognisedProgram& program) {
  Json json = {{"app", program.match.app}, {"ranges", program.match.ranges}};
  json["range"] = program.range != nullptr ? Json(program.range->id) : Json(nullptr);
  json["markers"] = program.match.markers;
  json["rules"] = Json::array();
  for (const RuleCheck& check : program.rules) {
    json["rules"].push_back({{"rule", check.rule},
                             {"outcome", to_string(check.outcome)},
                             {"gate", check.gate},
                             {"detail", check.detail}});
  }
  return json;
}

std::string signing_text(const Findings::Signing& signing) {
  if (!signing.is_signed) return "not signed";
  std::vector<std::string_view> words;
  if (signing.adhoc) words.emplace_back("ad hoc");
  if (signing.linker_signed) words.emplace_back("by the linker");
  if (signing.hardened) words.emplace_back("hardened runtime");
  if (signing.library_validation) words.emplace_back("library validation");
  if (signing.has_cms) words.emplace_back("CMS signature");
  std::string text = fmt::format("signed: {} (flags {:#x})", fmt::join(words, ", "), signing.flags);
  if (!signing.team_id.empty()) text += ", team " + printable(signing.team_id);
  if (!signing.entitlements.empty() || signing.has_der) text += ", with entitlements";
  return text;
}

class Writer {
 public:
  Writer(const Tables& tables, const Findings& findings,
         const std::vector<RecognisedProgram>& programs, TextStyle style)
      : tables_(tables), f_(findings), programs_(programs), style_(style) {}

  std::string text() {
    head();
    queries();
    ladders();
    gates();
    rules();
    rest();
    return std::move(out_);
  }

 private:
  void line(std::size_t indent, std::string_view label, std::string_view text) {
    if (text.empty()) return;
    out_ += fmt::format("{:{}}{}{}\n", "", indent, label,
                        wrap(text, indent + 2, indent + label.size()));
  }

  void heading(std::string_view text, std::size_t count) {
    out_ += fmt::format("\n{} ({})\n", style_.paint(TextStyle::Ink::bold, text), count);
  }

  void head() {
    const auto& image = f_.image;
    out_ +=
        fmt::format("{}{} {}\n", style_.paint(TextStyle::Ink::bold, printable(image.path)),
                    image.member.empty() ? "" : "(" + printable(image.member) + ")", image.arch);
    out_ += fmt::format("  uuid {}, {} bytes, {}\n", image.uuid.empty() ? "none" : image.uuid,
                        image.size, image.build.empty() ? "no build version" : image.build);
    line(2, "", signing_text(f_.signing));
    if (style_.verbosity > 0) line(2, "entitlements: ", f_.signing.entitlements);
    for (const RecognisedProgram& program : programs_) recognised(program);
    const Findings::Totals totals = f_.totals();
    out_ += fmt::format("  query sites with an argument: {} found = {} resolved + {} unresolved\n",
                        totals.found, totals.resolved, totals.unresolved);
  }

  /// Markers bound a release from below more often than from above, so the range is not a version.
  void recognised(const RecognisedProgram& program) {
    std::string text = program.match.app;
    if (program.range != nullptr) {
      text += "@" + program.range->id;
      const bool newest = program.range == &program.app->ranges.back();
      if (program.match.ranges.size() > 1) {
        text += fmt::format(", the newest of {} ranges that fit", program.match.ranges.size());
      }
      if (newest) text += ", or later than what was read";
    }
    line(2,
         "recognised: ", fmt::format("{} (by {})", text, fmt::join(program.match.markers, ", ")));
  }

  std::string arguments_text(const QuerySite& site) const {
    if (!site.text.empty()) return fmt::format("'{}'", printable(site.text));
    if (site.arguments.kind == SiteArguments::Kind::none) return {};
    std::string text = to_string(site.arguments);
    if (site.query == "supportsFamily:" && site.arguments.values.size() == 1) {
      const Family* family = tables_.family(site.arguments.values.front());
      if (family != nullptr) text += fmt::format(" ({})", family->short_name);
    }
    return text;
  }

  void queries() {
    std::set<std::uint64_t> in_ladder;
    for (const Ladder& ladder : f_.ladders)
      in_ladder.insert(ladder.sites.begin(), ladder.sites.end());
    std::map<std::string, std::vector<const QuerySite*>> by_query;
    for (const QuerySite& site : f_.sites) {
      if (style_.verbosity > 0 || !in_ladder.contains(site.address)) {
        by_query[site.query].push_back(&site);
      }
    }
    heading("queries", by_query.size());
    for (const auto& [query, sites] : by_query) {
      out_ += fmt::format("  {}\n", printable(query));
      for (const QuerySite* site : sites) {
        out_ += fmt::format("    {:#x}  {:<24} {}{} in {}\n", site->address, arguments_text(*site),
                            to_string(site->route), site->tail_call ? ", tail call" : "",
                            printable(site->function));
      }
    }
  }

  void ladders() {
    if (f_.ladders.empty()) return;
    heading("ladders: which is the highest?", f_.ladders.size());
    for (const Ladder& ladder : f_.ladders) {
      out_ +=
          fmt::format("  {:#x}  {}{}..{}, {} sites in {}\n", ladder.address, ladder.query,
                      ladder.first, ladder.last, ladder.sites.size(), printable(ladder.function));
      line(6, "kept in ", fmt::format("{}", fmt::join(ladder.uses, "; ")));
      if (!ladder.readers.empty()) {
        line(6, "read at ", fmt::format("{:#x}", fmt::join(ladder.readers, ", ")));
      }
    }
  }

  void side(std::string_view label, const GateSide& side) {
    if (style_.verbosity == 0) return;
    line(6, fmt::format("{} calls ", label), fmt::format("{}", fmt::join(side.calls, ", ")));
    line(6, fmt::format("{} sends ", label), fmt::format("{}", fmt::join(side.selectors, ", ")));
    line(6, fmt::format("{} strings ", label), fmt::format("{}", fmt::join(side.strings, " | ")));
  }

  void gates() {
    if (f_.gates.empty()) return;
    heading("gates: what hangs on answers", f_.gates.size());
    for (const Gate& gate : f_.gates) {
      const std::string_view level = gate.certainty == Certainty::certain ? "certain" : "likely";
      const std::string place =
          gate.where.kind == Gate::Where::Kind::field
              ? fmt::format("field [{}]+{:#x}", gate.where.base, gate.where.offset)
              : fmt::format("{:#x}", gate.where.address);
      out_ += fmt::format("  {} [{}] {} in {}\n", gate.id, level, place, printable(gate.function));
      line(6, "when ", gate.expr);
      if (!gate.readers.empty()) {
        line(6, "read at ", fmt::format("{:#x}", fmt::join(gate.readers, ", ")));
      }
      line(6, "feeds ", fmt::format("{}", fmt::join(gate.feeds, ", ")));
      side("if yes,", gate.if_true);
      side("if no,", gate.if_false);
    }
  }

  void rules() {
    for (const RecognisedProgram& program : programs_) {
      if (program.rules.empty()) continue;
      heading(fmt::format("rules of {}@{}", program.match.app, program.range->id),
              program.rules.size());
      for (const RuleCheck& check : program.rules) {
        out_ += fmt::format("  {} {}\n", check.rule, to_string(check.outcome));
        line(6, "", check.detail);
      }
    }
  }

  void rest() {
    if (!f_.hidden.empty()) {
      heading("named but not seen asked", f_.hidden.size());
      std::map<std::string, std::vector<std::string>> by_reason;
      for (const HiddenQuery& hidden : f_.hidden) {
        by_reason[hidden.reason].push_back(hidden.selector);
      }
      for (const auto& [reason, selectors] : by_reason) {
        line(2, "", fmt::format("{}: {}", reason, fmt::join(selectors, ", ")));
      }
    }
    if (style_.verbosity > 1) {
      for (const auto& [name, n] : f_.counted) line(2, "counted: ", fmt::format("{} {}", n, name));
      for (const auto& [name, n] : f_.unproven) {
        line(2, "not proven to ask a device: ", fmt::format("{} {}", n, name));
      }
    }
    for (const std::string& note : f_.notes) line(0, "note: ", note);
    out_ += "\n";
  }

  const Tables& tables_;
  const Findings& f_;
  const std::vector<RecognisedProgram>& programs_;
  TextStyle style_;
  std::string out_;
};

}  // namespace

Json findings_json(const Findings& findings, const std::vector<RecognisedProgram>& programs) {
  Json json = {{"findings", to_json(findings)}, {"programs", Json::array()}};
  for (const RecognisedProgram& program : programs)
    json["programs"].push_back(program_json(program));
  return json;
}

std::string findings_text(const Tables& tables, const Findings& findings,
                          const std::vector<RecognisedProgram>& programs, TextStyle style) {
  return Writer(tables, findings, programs, style).text();
}

}  // namespace metaldoctor
