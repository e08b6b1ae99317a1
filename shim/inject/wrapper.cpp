#include "shim/inject/wrapper.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "shim/inject/injection.h"

namespace metaldoctor {
namespace {

constexpr std::string_view kFirstLines =
    "#!/bin/sh\n# Made by metaldoctor apply; `metaldoctor rollback` removes it.\n";

bool is_shell_name(std::string_view name) {
  const auto fits = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
         std::ranges::all_of(name, fits);
}

}  // namespace

std::string shell_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + '\'';
}

Result<std::string> wrapper_text(const std::vector<std::string>& command,
                                 const std::vector<std::string>& assignments,
                                 const std::string& library) {
  std::string out(kFirstLines);
  for (const std::string& each : assignments) {
    const std::string name = each.substr(0, each.find('='));
    if (!is_shell_name(name) || name.size() == each.size()) {
      return fail(Fault::refused, "wrapper", each,
                  "expected NAME=value with a name that a shell has");
    }
    out += fmt::format("export {}={}\n", name, shell_quoted(each.substr(name.size() + 1)));
  }
  out += fmt::format("{0}={1}${{{0}:+:${0}}}\nexport {0}\nexec", kInsertVariable,
                     shell_quoted(library));
  for (const std::string& word : command) out += ' ' + shell_quoted(word);
  return out + " \"$@\"\n";
}

bool is_wrapper(const std::string& text) {
  return text.starts_with(kFirstLines);
}

}  // namespace metaldoctor
