#include "tools/render/run_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "tools/render/diagnosis.h"

namespace metaldoctor {
namespace {

using Asked = JournalProcess::Asked;

std::string caller_text(const Asked& asked) {
  if (asked.image.empty()) return fmt::format("code outside any image, {:#x}", asked.offset);
  return fmt::format("{}+{:#x}", printable(asked.image), asked.offset);
}

bool is_changed(const Asked& asked) {
  return asked.stock != asked.given;
}

Json asked_json(const Asked& asked) {
  Json json = to_json(asked.key);
  json["stock"] = to_json(asked.stock);
  json["given"] = to_json(asked.given);
  json["image"] = printable(asked.image);
  json["offset"] = to_json(Value(static_cast<std::int64_t>(asked.offset)));
  return json;
}

Json process_json(const JournalProcess& process) {
  Json json = {{"pid", process.pid}, {"executable", printable(process.executable)}};
  json["profile"] = {{"origin", printable(process.origin)},
                     {"state", printable(process.state)},
                     {"changes", process.changes},
                     {"bound", printable(process.bound)},
                     {"callers", printable(process.callers)},
                     {"scope", printable(process.scope)}};
  json["installs"] = Json::array();
  for (const auto& row : process.installs) {
    json["installs"].push_back({{"class", printable(row.device_class)},
                                {"state", printable(row.state)},
                                {"hooks", row.hooks},
                                {"reason", printable(row.reason)},
                                {"selector", printable(row.selector)}});
  }
  json["asked"] = Json::array();
  for (const Asked& asked : process.asked) json["asked"].push_back(asked_json(asked));
  json["full"] = process.full;
  return json;
}

class Writer {
 public:
  Writer(const Tables& tables, bool observing, TextStyle style)
      : tables_(tables), observing_(observing), style_(style) {}

  void process(const JournalProcess& process) {
    if (!process.took_hold()) return;
    std::size_t changed = 0;
    for (const Asked& asked : process.asked) changed += is_changed(asked);
    line(0, fmt::format("{} (process {}): {} question(s) asked, {} answered otherwise",
                        printable(process.executable), process.pid, process.asked.size(), changed));
    if (process.bound == "above-host" || process.bound == "drop-in, unbounded") {
      line(2, "its answers are not bounded by the host: " + process.bound);
    }
    if (observing_ || style_.verbosity > 0) {
      by_caller(process);
    } else {
      changed_only(process);
    }
    if (process.full) line(2, "the journal is full: more may have been asked");
  }

  void line(std::size_t indent, std::string_view text) {
    out_ += fmt::format("{:{}}{}\n", "", indent, wrap(text, indent + 2, indent));
  }

  std::string take() { return std::move(out_); }

 private:
  std::string answer(const Asked& asked) const {
    const std::string stock = to_string(asked.stock);
    return is_changed(asked) ? fmt::format("{} -> {}", stock, to_string(asked.given)) : stock;
  }

  void by_caller(const JournalProcess& process) {
    std::map<std::string, std::vector<const Asked*>> callers;
    for (const Asked& asked : process.asked) callers[asked.image].push_back(&asked);
    for (auto& [image, questions] : callers) {
      line(2, image.empty() ? std::string("code outside any image") : printable(image));
      std::ranges::sort(questions, {}, [](const Asked* each) { return each->key; });
      for (const Asked* each : questions) {
        line(4, fmt::format("{} = {}{}", query_text(tables_, each->key), answer(*each),
                            style_.verbosity > 0 ? fmt::format("  +{:#x}", each->offset) : ""));
      }
    }
  }

  void changed_only(const JournalProcess& process) {
    for (const Asked& asked : process.asked) {
      if (!is_changed(asked)) continue;
      line(2, fmt::format("{}: {}, first asked by {}", query_text(tables_, asked.key),
                          answer(asked), caller_text(asked)));
    }
    const auto changed = std::ranges::count_if(process.asked, is_changed);
    if (changed == 0 && process.changes > 0) {
      line(2, "none of the changed answers was asked for");
    }
  }

  const Tables& tables_;
  bool observing_;
  TextStyle style_;
  std::string out_;
};

Json preflight_summary(const RunReport& report) {
  if (!report.preflight) return nullptr;
  const Preflight& decision = report.preflight->decision();
  return {{"arch", decision.arch}, {"verdict", decision.row->verdict}, {"row", decision.row->id}};
}

}  // namespace

Json run_json(const Tables&, const RunReport& report) {
  Json json = {{"schema", "metaldoctor.run/1"}};
  json["command"] = Json::array();
  for (const std::string& word : report.command) json["command"].push_back(printable(word));
  json["status"] = report.end.status();
  json["pid"] = report.end.process_id;
  json["outcome"] = to_string(report.outcome);
  json["reason"] = report.reason;
  json["hints"] = report.hints;
  json["preflight"] = preflight_summary(report);
  json["evidence"] = to_string(Evidence::measured);
  json["processes"] = Json::array();
  for (const JournalProcess& process : report.journal.processes) {
    json["processes"].push_back(process_json(process));
  }
  json["damaged_lines"] = report.journal.damaged_count;
  return json;
}

std::string run_text(const Tables& tables, const RunReport& report, bool observing,
                     TextStyle style) {
  Writer writer(tables, observing, style);
  if (report.took_hold()) {
    writer.line(
        0, fmt::format("{} [{}]",
                       observing ? "the library kept its journal" : "the changed answers took hold",
                       to_string(Evidence::measured)));
  } else {
    writer.line(
        0, fmt::format("{}: {}",
                       observing ? "nothing was observed" : "the changed answers did NOT take hold",
                       report.reason));
    for (const std::string& hint : report.hints) writer.line(2, hint);
  }
  for (const JournalProcess& process : report.journal.processes) writer.process(process);
  if (report.journal.damaged_count > 0) {
    writer.line(0, fmt::format("{} line(s) of the journal are damaged and were not used",
                               report.journal.damaged_count));
  }
  return writer.take();
}

}  // namespace metaldoctor
