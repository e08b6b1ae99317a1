#include "shim/behaviour.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "scanners/macho/fixups.h"
#include "shim/behaviour_checks.h"

namespace metaldoctor {
namespace behaviour {
namespace {

using State = VerifyCheck::State;

struct RowText {
  Row row;
  std::string_view id;
  std::string_view good;  ///< "" = the notes say what was found
};
constexpr std::array<RowText, kRowCount> kRows{{
    {Row::runs, "runs", "every simulated process ran to its end"},
    {Row::answers, "answers", ""},
    {Row::other_device, "other-device", "a device of another class answers as without it"},
    {Row::wrapped_device, "wrapped-device",
     "the same answers through Metal's debug and capture "
     "wrappers"},
    {Row::moments, "moments",
     "a device made before it starts, and a process without Metal, stay "
     "as they are"},
    {Row::methods, "methods", ""},
    {Row::calls, "calls", ""},
    {Row::output, "output",
     "it prints nothing, and writes no file but the journal that was asked "
     "for"},
    {Row::writes, "writes", "it writes into no memory but its own"},
    {Row::environment, "environment", ""},
    {Row::configuration, "configuration", ""},
    {Row::malformed, "malformed", ""},
    {Row::other_system, "other-system",
     "nothing is changed where a method is missing or encoded "
     "otherwise"},
    {Row::twice, "twice", "loaded twice or started twice it answers the same"},
}};

}  // namespace

void Behaviour::note(Row which, std::string text) {
  auto& notes = row(which).notes;
  if (std::ranges::find(notes, text) == notes.end()) notes.push_back(std::move(text));
}

Environment Behaviour::plus(std::string_view name, std::string_view value) const {
  Environment all = environment_;
  all[std::string(name)] = value;
  return all;
}

/// Steps by name: "start" runs the initialisers, "ask" asks everything.
SimulatedProcess Behaviour::process(std::vector<std::string> steps) const {
  SimulatedProcess out;
  out.arch = arch_;
  out.capture = options_.capture;
  out.bare_metal = options_.bare_metal;
  out.images = {image_};
  for (const std::string& step : steps) {
    if (step == "start") out.steps.push_back(initializers_step());
    if (step != "ask") continue;
    for (Json& ask : ask_steps(more_questions_)) out.steps.push_back(std::move(ask));
  }
  out.runs = {{"plain", environment_}};
  return out;
}

Behaviour::Traces Behaviour::simulate(const SimulatedProcess& process, std::string_view situation) {
  const auto result = simulator_(request_document(process));
  if (!result) return tl::unexpected(result.error());
  auto traces = read_traces(tables_, *result);
  if (!traces) return traces;
  if (traces->size() != process.runs.size()) {
    return fail(Fault::input, "simulator-result", "simulator", "a run is missing in its result");
  }
  for (const BehaviourTrace& trace : *traces) {
    if (!trace.stop.empty()) problem(Row::runs, fmt::format("{}: {}", situation, trace.stop));
  }
  return traces;
}

/// -[_MTLDevice supportsFeatureSet:] asks supportsFamily: for the family that the set belongs to.
bool Behaviour::is_consequence(const QueryKey& key) const {
  if (!wanted_ || key.query != "supportsFeatureSet:" || key.arguments.size() != 1) return false;
  const FeatureSet* set = tables_.feature_set(key.arguments[0]);
  const Family* family = set && set->family ? tables_.family(*set->family) : nullptr;
  return family && std::ranges::any_of(wanted_->changes, [&](const Answer& change) {
           return change.key == QueryKey{"supportsFamily:", {family->value}};
         });
}

/// All answers of a run against those that are wanted.
void Behaviour::expect(Row which, std::string_view situation, const AnswerTable& wanted,
                       const BehaviourTrace& trace, bool consequences) {
  if (!trace.stop.empty()) return;
  std::vector<std::string> texts;
  for (std::size_t device = 0; device < (consequences ? 1 : 2); ++device) {
    for (const auto& each : differences(tables_, wanted, trace.answers, device)) {
      if (consequences && is_consequence(each.key)) continue;
      texts.push_back(fmt::format("device {} {}", device + 1, each.text));
    }
  }
  if (!texts.empty()) problem(which, fmt::format("{}: {}", situation, first_few(texts)));
}

Result<void> Behaviour::prepare() {
  environment_ = options_.environment;
  if (report_.profile) {
    wanted_ = report_.profile;
  } else if (options_.expected) {
    auto injected = injected_profile(tables_, *options_.expected, shim::Bound::host);
    if (!injected) return tl::unexpected(injected.error());
    wanted_ = *std::move(injected);
  }
  if (report_.is_template) {
    const auto sample = decode_profile(kSample, "sample");
    if (!wanted_) wanted_ = *sample;
    environment_["METALDOCTOR_PROFILE"] = encode(*wanted_);
  } else if (ours() && !wanted_) {
    wanted_ = InjectedProfile{};
  }
  if (!wanted_) return {};
  // Arguments around the changed ones, and one that only its upper half tells apart.
  for (const Answer& change : wanted_->changes) {
    more_questions_.push_back(change.key);
    if (change.key.arguments.empty()) continue;
    const std::int64_t argument = change.key.arguments[0];
    for (const std::int64_t near :
         {argument - 1, argument + 1, -argument, argument + (std::int64_t{1} << 32)}) {
      const auto taken = std::abs(near) <= shim::kMaxArgument;
      if (taken) more_questions_.push_back({change.key.query, {near}});
    }
  }
  return {};
}

Result<void> Behaviour::run() {
  if (auto ready = prepare(); !ready) return ready;
  const auto macho = MachOFile::read(file_, "library");
  if (!macho) return tl::unexpected(macho.error());
  bool executed = false;
  for (const Slice& slice : macho->slices()) {
    if (slice.arch != "arm64" && slice.arch != "x86_64") continue;
    executed = true;
    if (auto checked = architecture(slice); !checked) return checked;
  }
  if (!executed) {
    behaviour_not_checked("it has no architecture that can be executed", report_);
    return {};
  }
  for (const RowText& text : kRows) {
    const Finding& found = row(text.row);
    VerifyCheck check{std::string(text.id), State::passed, std::string(text.good),
                      Evidence::executed};
    if (!found.problems.empty()) {
      check.state = State::failed;
      check.detail = fmt::format("{}", fmt::join(found.problems.texts(), "; "));
    } else if (!found.not_applicable.empty()) {
      check.state = State::not_applicable;
      check.detail = found.not_applicable;
    } else if (!found.notes.empty()) {
      check.detail = fmt::format("{}", fmt::join(found.notes, "; "));
    }
    report_.checks.push_back(std::move(check));
  }
  set_cannot_prove(report_, true);
  return {};
}

Result<void> Behaviour::architecture(const Slice& slice) {
  arch_ = slice.arch;
  image_.assign(slice.bytes.begin(), slice.bytes.end());
  const auto image = Image::read(slice);
  if (!image) return tl::unexpected(image.error());
  imports_.clear();
  if (const auto fixups = Fixups::read(*image)) {
    for (const Import& import : fixups->imports()) imports_.insert(std::string(import.name));
  }
  for (const auto step : {&Behaviour::start, &Behaviour::wrappers, &Behaviour::moments,
                          &Behaviour::malformed, &Behaviour::other_system}) {
    if (auto done = (this->*step)(); !done) return done;
  }
  if (auto done = twice(*image); !done) return done;
  return options_.flips ? flips() : Result<void>{};
}

}  // namespace behaviour

Result<void> verify_behaviour(const Tables& tables, Bytes file, const BehaviourOptions& options,
                              const Simulator& simulator, VerifyReport& report) {
  return behaviour::Behaviour(tables, file, options, simulator, report).run();
}

void behaviour_not_checked(const std::string& reason, VerifyReport& report) {
  for (const auto& text : behaviour::kRows) {
    report.checks.push_back(
        {std::string(text.id), VerifyCheck::State::not_checked, reason, Evidence::unknown});
  }
}

void behaviour_not_executable(const std::string& reason, VerifyReport& report) {
  behaviour_not_checked("it could not be executed", report);
  const auto runs = std::ranges::find(report.checks, "runs", &VerifyCheck::id);
  *runs = {"runs", VerifyCheck::State::failed, reason, Evidence::executed};
}

}  // namespace metaldoctor
