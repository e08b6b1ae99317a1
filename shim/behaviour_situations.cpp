// What a library does where something is otherwise than at a plain start.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "shim/behaviour_checks.h"
#include "shim/malformed.h"

namespace metaldoctor::behaviour {

Result<void> Behaviour::wrappers() {
  if (wanted_ && wanted_->callers == Profile::Callers::app) {
    row(Row::wrapped_device).not_applicable =
        "for callers=app a wrapper, which is part of Metal, may count as the caller";
    return {};
  }
  for (const std::string_view wrapper : {"debug", "capture"}) {
    SimulatedProcess without = process({"ask"}), with = process({"start", "ask"});
    without.wrapper = with.wrapper = wrapper;
    without.runs = {{"stock", options_.environment}};
    const std::string situation = fmt::format("behind the {} wrapper", wrapper);
    const auto stock = simulate(without, situation);
    if (!stock) return tl::unexpected(stock.error());
    const auto plain = simulate(with, situation);
    if (!plain) return tl::unexpected(plain.error());
    if (!wanted_) {
      row(Row::wrapped_device).not_applicable = "nobody says what it should change";
      continue;
    }
    expect(Row::wrapped_device, situation,
           with_changes(stock->front().answers, wanted_->changes, 0), plain->front(), true);
  }
  return {};
}

Result<void> Behaviour::moments() {
  const auto late = simulate(process({"ask", "start", "ask"}), "after a device was made");
  if (!late) return tl::unexpected(late.error());
  if (ours()) expect(Row::moments, "after a device was made", stock_, late->front());
  SimulatedProcess absent = process({"start"});
  absent.metal = "never";
  const auto never = simulate(absent, "without Metal");
  if (!never) return tl::unexpected(never.error());
  if (!never->front().methods.empty()) {
    problem(Row::moments, "without Metal it replaces methods");
  }
  return {};
}

Result<void> Behaviour::malformed() {
  if (!ours()) {
    row(Row::malformed).not_applicable = "what configures it is not known";
    return {};
  }
  std::vector<SimulatedProcess> processes;
  const std::vector<std::string> texts = malformed_profiles(encode(*wanted_));
  if (report_.is_template) {
    processes.push_back(process({"start", "ask"}));
    processes.back().runs.clear();
    for (const std::string& text : texts) {
      processes.back().runs.push_back(
          {std::to_string(processes.back().runs.size()), plus("METALDOCTOR_PROFILE", text)});
    }
  } else {
    for (const std::string& text : texts) {
      processes.push_back(process({"start", "ask"}));
      processes.back().images = {with_section_text(image_, text)};
    }
  }
  for (const SimulatedProcess& each : processes) {
    const auto traces = simulate(each, "with a malformed profile");
    if (!traces) return tl::unexpected(traces.error());
    for (const BehaviourTrace& trace : *traces) {
      expect(Row::malformed, "with a malformed profile", stock_, trace);
      if (!trace.methods.empty()) problem(Row::malformed, "it replaces methods all the same");
    }
  }
  note(Row::malformed,
       fmt::format("{} malformed profiles leave every answer as it was", texts.size()));
  return {};
}

/// With the method that is hooked missing or encoded otherwise.
Result<void> Behaviour::other_system() {
  const Json missing = Json::array({{{"class", kBase}, {"selector", kMoment}}});
  const Json otherwise =
      Json::array({{{"class", kBase}, {"selector", kMoment}, {"types", "v24@0:8q16"}}});
  if (auto done = system(missing, "without initGPUFamilySupport", kMoment); !done) return done;
  if (auto done = system(otherwise, "where initGPUFamilySupport is encoded otherwise", kMoment);
      !done) {
    return done;
  }
  if (changed_selector_.empty()) return {};
  Json query = Json::array();
  for (const std::string_view cls :
       {std::string_view("_MTLDevice"), std::string_view("IOGPUMetalDevice"),
        std::string_view("MTLIOAccelDevice"), first_driver(process({}))}) {
    query.push_back({{"class", cls}, {"selector", changed_selector_}, {"types", "{?=QQQ}16@0:8"}});
  }
  return system(query, fmt::format("where {} is encoded otherwise", changed_selector_),
                changed_selector_);
}

Result<void> Behaviour::system(const Json& change, std::string_view name,
                               std::string_view selector) {
  SimulatedProcess with = process({"start", "ask"});
  with.system = change;
  with.runs = {{"journal", plus("METALDOCTOR_JOURNAL", kJournal)}};
  const auto traces = simulate(with, name);
  if (!traces) return tl::unexpected(traces.error());
  const BehaviourTrace& trace = traces->front();
  expect(Row::other_system, name, stock_, trace);
  if (!ours() || !wanted_ || wanted_->changes.empty() || !trace.stop.empty()) return {};
  const auto file = trace.files.find(std::string(kJournal));
  const std::string text = file == trace.files.end() ? std::string() : file->second;
  const auto refused = text.find("\trefused\t");
  if (refused == text.npos || text.find(selector, refused) == text.npos) {
    problem(Row::other_system, fmt::format("{}: the journal does not name {}", name, selector));
  }
  return {};
}

Result<void> Behaviour::twice(const Image& image) {
  const AnswerTable& wanted = plain_;
  SimulatedProcess loaded = process({"start", "ask"});
  loaded.images.push_back(image_);
  const auto two = simulate(loaded, "loaded twice");
  if (!two) return tl::unexpected(two.error());
  expect(Row::twice, "loaded twice", wanted, two->front());
  const Section* initialisers = image.section("__TEXT", "__init_offsets");
  const auto offset = initialisers ? read_at<std::uint32_t>(initialisers->bytes, 0) : std::nullopt;
  if (!offset) return {};
  SimulatedProcess started = process({"start"});
  for (int i = 0; i < 2; ++i) {
    started.steps.push_back(call_step(image.base() + *offset));
    for (Json& ask : ask_steps(more_questions_)) started.steps.push_back(std::move(ask));
  }
  const auto again = simulate(started, "started twice");
  if (!again) return tl::unexpected(again.error());
  expect(Row::twice, "started twice", wanted, again->front());
  return {};
}

/// Metal asks its own device too, live and for a table it keeps: which of those answers change.
Result<void> Behaviour::flips() {
  if (!report_.flips.empty()) return {};  // the same on every architecture
  SimulatedProcess without = process({"ask"}), with = process({"start", "ask"});
  without.devices = with.devices = 1;
  without.runs = {{"stock", options_.environment}};
  const auto stock = simulate(without, "before it starts");
  if (!stock) return tl::unexpected(stock.error());
  const std::set<std::string> before(stock->front().metal_features.begin(),
                                     stock->front().metal_features.end());
  std::vector<std::pair<Profile::Callers, SimulatedProcess>> modes = {
      {wanted_ ? wanted_->callers : Profile::Callers::all, with}};
  if (report_.profile) {
    InjectedProfile other = *report_.profile;
    other.callers =
        other.callers == Profile::Callers::all ? Profile::Callers::app : Profile::Callers::all;
    with.images = {with_section_text(image_, encode(other))};
    modes.emplace_back(other.callers, with);
  }
  for (const auto& [callers, mode] : modes) {
    const auto traces = simulate(mode, "for Metal's own questions");
    if (!traces) return tl::unexpected(traces.error());
    const std::set<std::string> after(traces->front().metal_features.begin(),
                                      traces->front().metal_features.end());
    MetalFlips flips{callers, {}, {}};
    std::ranges::set_difference(after, before, std::back_inserter(flips.gained));
    std::ranges::set_difference(before, after, std::back_inserter(flips.lost));
    report_.flips.push_back(std::move(flips));
  }
  std::ranges::sort(report_.flips, {}, &MetalFlips::callers);
  return {};
}

}  // namespace metaldoctor::behaviour
