// What a library does in a process that starts with it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "shim/behaviour_checks.h"

namespace metaldoctor::behaviour {

Result<void> Behaviour::start() {
  SimulatedProcess without = process({"ask"});
  without.runs = {{"stock", options_.environment}};
  const auto stock = simulate(without, "before it starts");
  if (!stock) return tl::unexpected(stock.error());
  stock_ = stock->front().answers;
  SimulatedProcess with = process({"start", "ask"});
  const std::string list = fmt::format("/other/a.dylib:{}", kVerifiedPath);
  with.runs.push_back({"inserted", plus("DYLD_INSERT_LIBRARIES", list)});
  with.runs.push_back({"journal", plus("METALDOCTOR_JOURNAL", kJournal)});
  if (report_.is_template) {
    with.runs.push_back({"unconfigured", options_.environment});
  } else if (ours()) {
    Environment others = plus("METALDOCTOR_PROFILE", kSample);
    others["LUME_METAL_APPLE_FAMILY_MAX"] = others["VEERTU_ANKA_GPU_APPLE_FAMILY_MAX"] = "1011";
    with.runs.push_back({"configured", std::move(others)});
  }
  const auto traces = simulate(with, "at its start");
  if (!traces) return tl::unexpected(traces.error());
  judge_start(*traces);
  for (std::size_t i = 0; i < traces->size(); ++i) judge_effects((*traces)[i], with.runs[i]);
  return {};
}

void Behaviour::judge_start(const std::vector<BehaviourTrace>& traces) {
  plain_ = traces[0].answers;
  if (traces[0].stop.empty()) {
    judge_answers(traces[0]);
    judge_methods(traces[0]);
  }
  if (!ours()) {
    row(Row::configuration).not_applicable = "what configures it is not known";
    return;
  }
  const BehaviourTrace& other = traces[3];
  if (report_.is_template) {
    expect(Row::configuration, "without configuration", stock_, other);
    if (!other.methods.empty()) problem(Row::configuration, "unconfigured it replaces methods");
    note(Row::configuration, "without configuration it does nothing");
  } else {
    expect(Row::configuration, "with variables of a template set", plain_, other);
    note(Row::configuration, "variables do not change what it was made for");
  }
  judge_journal(traces[2]);
}

void Behaviour::judge_answers(const BehaviourTrace& plain) {
  const auto changed = differences(tables_, stock_, plain.answers, 0);
  if (!wanted_) {
    std::vector<std::string> texts;
    for (const auto& each : changed) texts.push_back(each.text);
    row(Row::answers).not_applicable =
        texts.empty() ? "it changes no answer in this environment (--env sets variables)"
                      : fmt::format("nobody says what it should change; it changes {}: {}",
                                    texts.size(), first_few(texts));
  } else {
    const AnswerTable wanted = with_changes(stock_, wanted_->changes, 0);
    std::vector<std::string> wrong, derived;
    for (const auto& each : differences(tables_, wanted, plain.answers, 0)) {
      (is_consequence(each.key) ? derived : wrong).push_back(each.text);
    }
    if (!wrong.empty()) {
      problem(Row::answers, fmt::format("{} answer(s) are not as the profile has them: {}",
                                        wrong.size(), first_few(wrong)));
    }
    std::string good = fmt::format("{} of {} answers changed, exactly those of the profile",
                                   changed.size() - derived.size(), asked_of(plain.answers, 0));
    if (!derived.empty()) {
      good += fmt::format("; {} more that Metal derives from them: {}", derived.size(),
                          first_few(derived));
    }
    note(Row::answers, std::move(good));
  }
  std::vector<std::string> elsewhere;
  for (const auto& each : differences(tables_, stock_, plain.answers, 1)) {
    elsewhere.push_back(each.text);
  }
  if (!elsewhere.empty()) {
    problem(Row::other_device,
            fmt::format("{} answer(s) of a device of another class are changed too: {}",
                        elsewhere.size(), first_few(elsewhere)));
  }
}

void Behaviour::judge_methods(const BehaviourTrace& plain) {
  const SimulatedProcess shape = process({});
  std::vector<std::string> replaced;
  for (const ReplacedMethod& method : plain.methods) {
    const std::string text = fmt::format("{} of {}", method.selector, method.class_name);
    replaced.push_back(text);
    if (method.class_name == kBase && method.selector == kMoment) continue;
    changed_selector_ = method.selector;
    if (method.class_name != first_driver(shape)) {
      problem(Row::methods,
              text + " is replaced: every class that inherits it answers otherwise, process-wide");
    } else if (wanted_ && std::ranges::none_of(wanted_->changes, [&](const Answer& change) {
                 return change.key.query == method.selector;
               })) {
      problem(Row::methods, text + " is replaced, and no change needs it");
    }
  }
  note(Row::methods, replaced.empty() ? "it replaces no method"
                                      : fmt::format("replaces {}", fmt::join(replaced, ", ")));
}

/// What a run left behind besides answers.
void Behaviour::judge_effects(const BehaviourTrace& trace, const SimulatedRun& run) {
  for (const std::string& name : trace.imports_guessed) {
    if (imports_.contains(name)) {
      problem(Row::calls, fmt::format("{}: what {} does is not simulated", run.id, name));
    }
  }
  if (run.id == "journal") {
    const auto called = std::ranges::count_if(
        trace.imports, [&](const std::string& name) { return imports_.contains(name); });
    note(Row::calls, fmt::format("{} {} of {} imports", arch_, called, imports_.size()));
  }
  if (!trace.log.empty()) {
    problem(Row::output, fmt::format("{}: prints '{}'", run.id, trace.log.front()));
  }
  for (const auto& [path, text] : trace.files) {
    const auto journal = run.environment.find("METALDOCTOR_JOURNAL");
    if (!ours() || journal == run.environment.end() || path != journal->second) {
      problem(Row::output, fmt::format("{}: writes the file {}", run.id, path));
    }
  }
  for (const std::string& object : trace.written_objects) {
    if (object != "library.dylib") {
      problem(Row::writes, fmt::format("{}: writes into {}", run.id, object));
    }
  }
  Environment left = run.environment;
  const bool leaves =
      ours() && wanted_ && wanted_->scope == Profile::Scope::process && run.id == "inserted";
  if (leaves) left["DYLD_INSERT_LIBRARIES"] = "/other/a.dylib";
  if (trace.stop.empty() && left != trace.environment) {
    problem(Row::environment, fmt::format("{}: variables are not left as {}", run.id,
                                          leaves ? "scope process has them" : "they were"));
  }
  if (run.id == "inserted") {
    note(Row::environment, leaves ? "it takes itself out of DYLD_INSERT_LIBRARIES: children stay "
                                    "stock"
                                  : "left as it was: children get the library too");
  }
}

/// The lines that say what was done; the format is tables/wire_format.h.
void Behaviour::judge_journal(const BehaviourTrace& trace) {
  const auto file = trace.files.find(std::string(kJournal));
  const std::string text = file == trace.files.end() ? std::string() : file->second;
  const bool installs = wanted_ && !wanted_->changes.empty();
  if (trace.stop.empty() && installs && text.find("\tinstalled\t") == text.npos) {
    problem(Row::output, "the journal does not say that hooks were installed");
  }
}

}  // namespace metaldoctor::behaviour
