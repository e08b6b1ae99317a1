#include "shim/inject/launch_agent.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "shim/inject/injection.h"
#include "shim/inject/plist.h"

namespace metaldoctor {
namespace {

constexpr std::size_t kLongestLabel = 128;
constexpr const char* kVariables = "EnvironmentVariables";
constexpr const char* kArguments = "ProgramArguments";
constexpr const char* kLaunchctl = "/bin/launchctl";

tl::unexpected<Diagnostic> refuse(const std::string& where, std::string what,
                                  std::string hint = {}) {
  return fail(Fault::refused, "launch-agent", where, std::move(what), std::move(hint));
}

Result<void> check_text(const std::string& where, const std::string& text) {
  if (fits_plist(text)) return {};
  return refuse(where, "a property list cannot hold it: it is not UTF-8, or has control characters",
                "apply --wrapper can");
}

bool is_label(const std::string& label) {
  return !label.empty() && label.size() <= kLongestLabel && label.front() != '.' &&
         label.front() != '-' && std::ranges::all_of(label, [](unsigned char c) {
           return std::isalnum(c) || c == '.' || c == '-' || c == '_';
         });
}

Result<Plist> read_existing(const LaunchAgent& agent, const std::string& existing,
                            const std::string& name) {
  if (existing.empty()) return Plist::empty();
  auto list = Plist::read(existing, name);
  if (!list) return list;
  if (list->text("Label") != agent.label) {
    return refuse(name, "its Label is not " + agent.label, "give the label of the file's own job");
  }
  if (list->has(kVariables) && !list->has_dictionary(kVariables)) {
    return refuse(name, fmt::format("its {} is not a dictionary", kVariables));
  }
  return list;
}

}  // namespace

Result<void> check_launch_agent(const LaunchAgent& agent) {
  if (!is_label(agent.label)) {
    return refuse("--launch-agent",
                  "expected a label of letters, digits, '.', '-' and '_', such as "
                  "com.example.server");
  }
  if (!agent.command.empty() && !is_plain_absolute(agent.command[0])) {
    return refuse(agent.command[0], "launchd needs the absolute path of the program");
  }
  for (const std::string& word : agent.command) {
    if (auto ok = check_text("argument", word); !ok) return ok;
  }
  for (const auto& [name, value] : agent.variables) {
    if (name.empty()) return refuse("--env", "expected NAME=VALUE");
    if (name.starts_with("DYLD_") || name == kJournalVariable) {
      return refuse("--env " + name, "is set by metaldoctor itself");
    }
    if (auto ok = check_text("--env", name + value); !ok) return ok;
  }
  if (!agent.log.empty() && !is_plain_absolute(agent.log)) {
    return refuse(agent.log, "launchd needs the absolute path of the log");
  }
  return check_text("--log", agent.log);
}

std::string agent_path(const std::string& home, const std::string& label) {
  return fmt::format("{}/Library/LaunchAgents/{}.plist", home, label);
}

Result<std::string> agent_text(const LaunchAgent& agent, const std::string& existing,
                               const std::string& name) {
  auto list = read_existing(agent, existing, name);
  if (!list) return tl::unexpected(list.error());
  if (existing.empty()) list->set_text("Label", agent.label);
  if (!agent.command.empty()) {
    list->set_texts(kArguments, agent.command);
    // Program wins over the first argument.
    if (list->has("Program")) list->set_text("Program", agent.command[0]);
  }
  const std::string inserted(kInsertVariable);
  const std::string before = list->text(kVariables, inserted).value_or(std::string());
  list->set_text(kVariables, inserted, with_library(before, agent.library));
  for (const auto& [variable, value] : agent.variables) {
    list->set_text(kVariables, variable, value);
  }
  if (!agent.log.empty()) {
    list->set_text("StandardOutPath", agent.log);
    list->set_text("StandardErrorPath", agent.log);
  }
  if (agent.run_at_load) list->set_truth("RunAtLoad", true);
  return list->write();
}

Result<std::string> agent_program(const LaunchAgent& agent, const std::string& existing,
                                  const std::string& name) {
  if (!agent.command.empty()) return agent.command[0];
  if (existing.empty()) {
    return fail(Fault::usage, "no-program", name, "there is no such agent yet",
                "give its program: apply --launch-agent LABEL -- PROGRAM [ARGUMENT...]");
  }
  const auto list = read_existing(agent, existing, name);
  if (!list) return tl::unexpected(list.error());
  if (const auto program = list->text("Program")) return *program;
  const auto arguments = list->texts(kArguments);
  if (!arguments || arguments->empty()) return refuse(name, "names no program");
  return arguments->front();
}

void add_launchctl(const LaunchAgent& agent, const std::string& path, bool exists, unsigned user,
                   ChangePlan& plan) {
  const std::string domain = fmt::format("{}/{}", agent.in_gui ? "gui" : "user", user);
  const std::string job = fmt::format("{}/{}", domain, agent.label);
  const ReceiptCommand boot_out{{kLaunchctl, "bootout", job}, true};
  const ReceiptCommand boot_in{{kLaunchctl, "bootstrap", domain, path}, false};
  plan.after.push_back({{"/usr/bin/plutil", "-lint", path}, false});
  if (exists) plan.after.push_back(boot_out);
  plan.after.push_back(boot_in);
  if (!exists && !agent.run_at_load) {
    plan.after.push_back({{kLaunchctl, "kickstart", job}, false});
  }
  plan.undo_before.push_back(boot_out);
  if (exists) plan.undo_after.push_back(boot_in);
}

}  // namespace metaldoctor
