#include "scanners/device/wire_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>

namespace metaldoctor {
namespace {

constexpr std::uint64_t kMostDevices = 64;
constexpr std::size_t kMostProcesses = 4096;
// A probe tells a handful; they are looked up one by one.
constexpr std::size_t kMostFacts = 256;
constexpr std::size_t kMostDamage = 100;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool fits_type(const Value& value, AnswerType type) {
  switch (type) {
    case AnswerType::boolean:
      return std::holds_alternative<bool>(value);
    case AnswerType::integer:
      return std::holds_alternative<std::int64_t>(value);
    default:
      return std::holds_alternative<std::string>(value);
  }
}

/// Gathers the lines of a probe, device by device.
class ProbeReader {
 public:
  ProbeReader(const Tables& tables, std::string_view name) : tables_(tables), name_(name) {}
  ProbeOutput read(WireText text);

 private:
  void line(const WireLine& line);
  void system(const WireLine& line);
  void device(const WireLine& line);
  void answer(const WireLine& line);
  void unanswered(const WireLine& line);
  void fact(const WireLine& line);
  void finish(Capture& capture, std::set<QueryKey>& told);
  void add_common(Capture& capture) const;

  struct Device {
    Capture capture;
    std::set<QueryKey> told;  ///< answered, or said to have no answer
  };
  /// The device of a line, if its own line was there.
  Device* device_of(const WireLine& line);
  /// The query and argument in fields 1 and 2; told once each.
  std::optional<QueryKey> key_of(const WireLine& line, Device& device);
  void damage(const WireLine& line, std::string what);
  CaptureSource source(const WireLine& line) const {
    return {CaptureSource::Kind::live, std::string(name_), line.number, {}};
  }

  const Tables& tables_;
  std::string_view name_;
  ProbeOutput out_;
  std::map<std::uint64_t, Device> devices_;
  std::set<std::string> system_told_;
  std::vector<CapturedFact> of_all_;  ///< facts that every device shares
};

ProbeOutput ProbeReader::read(WireText text) {
  out_.version = text.version;
  out_.damaged = std::move(text.damaged);
  out_.damaged_count = text.damaged_count;
  for (const WireLine& each : text.lines) line(each);
  // The header is no element of `lines`, and the last line does not count itself.
  out_.complete = !text.lines.empty() && text.lines.back().is("end") &&
                  text.lines.back().number_at(0) == text.lines.size();
  for (auto& [index, device] : devices_) {
    add_common(device.capture);
    finish(device.capture, device.told);
    out_.devices.push_back(std::move(device.capture));
  }
  if (out_.devices.empty()) add_common(out_.devices.emplace_back());
  return std::move(out_);
}

/// What the text says of the machine, and of itself.
void ProbeReader::add_common(Capture& capture) const {
  const CaptureSource whole{CaptureSource::Kind::live, std::string(name_), {}, {}};
  capture.system = out_.system;
  capture.facts.insert(capture.facts.end(), of_all_.begin(), of_all_.end());
  if (!out_.damaged.empty()) {
    capture.facts.push_back({"log.damaged_line",
                             static_cast<std::int64_t>(out_.damaged.front().line),
                             Evidence::measured, whole});
  }
  if (!out_.complete) capture.facts.push_back({"log.cut_short", true, Evidence::measured, whole});
}

void ProbeReader::line(const WireLine& line) {
  using Member = void (ProbeReader::*)(const WireLine&);
  static constexpr std::array<std::pair<std::string_view, Member>, 5> members{{
      {"system", &ProbeReader::system},
      {"device", &ProbeReader::device},
      {"answer", &ProbeReader::answer},
      {"unanswered", &ProbeReader::unanswered},
      {"fact", &ProbeReader::fact},
  }};
  for (const auto& [record, member] : members) {
    if (line.is(record)) return (this->*member)(line);
  }
  if (line.is("devices")) {
    if (!of_all_.empty()) return damage(line, "the devices are counted twice");
    of_all_.push_back({"devices.count", line.value(0), Evidence::measured, source(line)});
    of_all_.push_back({"devices.default", line.truth(1), Evidence::measured, source(line)});
  } else if (!line.is("end")) {
    damage(line, "a probe writes no such record");
  }
}

void ProbeReader::damage(const WireLine& line, std::string what) {
  if (++out_.damaged_count <= kMostDamage) out_.damaged.push_back({line.number, std::move(what)});
}

void ProbeReader::system(const WireLine& line) {
  static constexpr std::array<std::pair<std::string_view, std::string Capture::System::*>, 4> texts{
      {
          {"os", &Capture::System::os},
          {"build", &Capture::System::build},
          {"hw_model", &Capture::System::hw_model},
          {"cpu_brand", &Capture::System::cpu_brand},
      }};
  const Value value = line.value(1);
  const std::string key = line.text(0);
  if (!system_told_.insert(key).second) return damage(line, fmt::format("{} is told twice", key));
  for (const auto& [name, member] : texts) {
    if (key == name && std::holds_alternative<std::string>(value)) {
      out_.system.*member = std::get<std::string>(value);
    }
  }
  if (key == "is_virtual" && std::holds_alternative<bool>(value)) {
    out_.system.is_virtual = std::get<bool>(value);
  }
}

void ProbeReader::device(const WireLine& line) {
  const std::uint64_t index = line.number_at(0);
  if (index >= kMostDevices || devices_.contains(index)) {
    return damage(line, "a device with this number is not expected here");
  }
  Capture& capture = devices_[index].capture;
  capture.facts.push_back({"device.class", line.text(1), Evidence::measured, source(line)});
  capture.facts.push_back({"device.default", line.truth(2), Evidence::measured, source(line)});
}

ProbeReader::Device* ProbeReader::device_of(const WireLine& line) {
  const auto found = devices_.find(line.number_at(0));
  if (found != devices_.end()) return &found->second;
  damage(line, "the line of its device is missing");
  return nullptr;
}

std::optional<QueryKey> ProbeReader::key_of(const WireLine& line, Device& device) {
  const auto key = tables_.canonical({line.text(1), line.arguments(2)});
  if (!key) {
    damage(line, key.error().what);
    return std::nullopt;
  }
  if (!device.told.insert(*key).second) {
    damage(line, fmt::format("{} is answered twice", to_string(*key)));
    return std::nullopt;
  }
  return *key;
}

void ProbeReader::answer(const WireLine& line) {
  Device* device = device_of(line);
  if (!device) return;
  const auto key = key_of(line, *device);
  if (!key) return;
  Capture& capture = device->capture;
  const Value value = line.value(3);
  const Query* query = tables_.query(key->query);
  if (key->query == "registryID" && std::ranges::all_of(line.fields[3], is_digit)) {
    capture.registry_id = line.fields[3];  // also beyond the 63 bits of a Value
  }
  if (!query || !fits_type(value, query->type)) {
    capture.unknown.push_back({*key, "the answer is not of the kind that this question has"});
    return;
  }
  if (key->query == "name") capture.name = std::get<std::string>(value);
  if (key->query == "architecture.name") capture.architecture = std::get<std::string>(value);
  capture.answers.push_back({{*key, value}, Evidence::measured, source(line)});
}

void ProbeReader::unanswered(const WireLine& line) {
  Device* device = device_of(line);
  if (!device) return;
  if (const auto key = key_of(line, *device)) {
    device->capture.unknown.push_back({*key, line.text(3)});
  }
}

void ProbeReader::fact(const WireLine& line) {
  Device* device = device_of(line);
  if (!device) return;
  const std::string fact = line.text(1);
  const Value value = line.value(2);
  if (fact.empty() || !is_known(value)) return damage(line, "a fact has a name and a value");
  if (device->capture.facts.size() >= kMostFacts) return damage(line, "more facts than are kept");
  if (device->capture.fact(fact)) return damage(line, fmt::format("{} is told twice", fact));
  device->capture.facts.push_back({fact, value, Evidence::measured, source(line)});
}

/// Everything a probe asks and this text does not tell is unknown: never a no.
void ProbeReader::finish(Capture& capture, std::set<QueryKey>& told) {
  add_implied_families(tables_, capture);
  for (const CapturedAnswer& row : capture.answers) told.insert(row.answer.key);
  for (const Query& query : tables_.queries()) {
    if (!query.safe_to_ask || query.type == AnswerType::object) continue;
    std::vector<QueryKey> keys;
    if (query.argument.empty()) keys.push_back({query.selector, {}});
    for (const std::int64_t argument : query.known_arguments) {
      keys.push_back({query.selector, {argument}});
    }
    for (QueryKey& key : keys) {
      if (told.contains(key)) continue;
      capture.unknown.push_back({std::move(key), "its line is missing or damaged"});
    }
  }
}

/// Records that begin with a process id.
bool is_of_journal(const WireLine& line) {
  static constexpr std::array<std::string_view, 4> names{"process", "profile", "install", "asked"};
  return std::ranges::any_of(names, [&](std::string_view name) { return line.is(name); });
}

/// Gathers the lines of a journal, process by process.
class JournalReader {
 public:
  explicit JournalReader(const Tables& tables) : tables_(tables) {}
  Journal read(WireText text);

 private:
  bool line(const WireLine& line, JournalProcess& process);
  JournalProcess* process_of(std::uint64_t pid);

  const Tables& tables_;
  Journal out_;
  std::map<std::uint64_t, std::size_t> by_pid_;
};

JournalProcess* JournalReader::process_of(std::uint64_t pid) {
  const auto [entry, added] = by_pid_.try_emplace(pid, out_.processes.size());
  if (added) {
    if (out_.processes.size() == kMostProcesses) {
      by_pid_.erase(entry);
      return nullptr;
    }
    out_.processes.emplace_back().pid = pid;
  }
  return &out_.processes[entry->second];
}

bool JournalReader::line(const WireLine& line, JournalProcess& process) {
  if (line.is("process")) {
    process.executable = line.text(1);
  } else if (line.is("profile")) {
    process.origin = line.text(1);
    process.state = line.text(2);
    process.changes = line.number_at(3);
    process.bound = line.text(4);
    process.callers = line.text(5);
    process.scope = line.text(6);
  } else if (line.is("install")) {
    process.installs.push_back(
        {line.text(1), line.text(2), line.number_at(3), line.text(4), line.text(5)});
  } else {
    const auto key = tables_.canonical({line.text(2), line.arguments(3)});
    if (!key) return false;
    process.asked.push_back(
        {line.text(1), *key, line.value(4), line.value(5), line.text(6), line.number_at(7)});
    process.full = process.asked.size() >= wire::kMostQuestions;
  }
  return true;
}

Journal JournalReader::read(WireText text) {
  out_.version = text.version;
  out_.damaged = std::move(text.damaged);
  out_.damaged_count = text.damaged_count;
  for (const WireLine& each : text.lines) {
    // A process id that comes again after "process" is another process: they are reused.
    if (each.is("process")) by_pid_.erase(each.number_at(0));
    JournalProcess* process = is_of_journal(each) ? process_of(each.number_at(0)) : nullptr;
    if (process && line(each, *process)) continue;
    if (++out_.damaged_count > kMostDamage) continue;
    out_.damaged.push_back({each.number, "a journal has no such line"});
  }
  return std::move(out_);
}

/// The reader of captures names a place in a document that nobody wrote: the line is told instead.
Diagnostic at_line(Diagnostic error, const Capture& capture, std::string_view name) {
  constexpr std::string_view kAnswers = "/answers/";
  const std::size_t at = error.where.find(kAnswers);
  std::size_t index = 0;
  if (at != error.where.npos) {
    const char* const digits = error.where.data() + at + kAnswers.size();
    std::from_chars(digits, error.where.data() + error.where.size(), index);
    if (index < capture.answers.size() && capture.answers[index].source.line) {
      error.where = fmt::format("{}:{}", name, *capture.answers[index].source.line);
    }
  }
  constexpr std::size_t kLongest = 200;
  if (error.what.size() > kLongest) error.what = error.what.substr(0, kLongest) + "...";
  return error;
}

}  // namespace

bool JournalProcess::took_hold() const {
  return std::ranges::any_of(installs, [](const Install& row) { return row.state == "installed"; });
}

Result<ProbeOutput> read_probe(const Tables& tables, std::string_view text, std::string_view name) {
  auto lines = read_wire(text, "probe", name);
  if (!lines) return tl::unexpected(lines.error());
  if (lines->headers.size() > 1) {
    return fail(Fault::input, "wire-two-outputs", fmt::format("{}:{}", name, lines->headers[1]),
                "a second output begins here, perhaps of another machine",
                "give the outputs as files of their own");
  }
  auto output = ProbeReader(tables, name).read(std::move(*lines));
  // What a document must hold (ranges, a macOS that can be read) is checked in one place.
  for (const Capture& capture : output.devices) {
    const auto checked = read_capture(tables, to_json(capture).dump(), name);
    if (!checked) return tl::unexpected(at_line(checked.error(), capture, name));
  }
  return output;
}

Result<Journal> read_journal(const Tables& tables, std::string_view text, std::string_view name) {
  auto lines = read_wire(text, "shim", name);
  if (!lines) return tl::unexpected(lines.error());
  return JournalReader(tables).read(std::move(*lines));
}

}  // namespace metaldoctor
