#include "tables/answer.h"

#include <charconv>

namespace metaldoctor {
namespace {

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_selector_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.';
}

/// How many bytes of `text` are the selector: names and dots, each part that takes an argument
/// closed by a colon. What follows the last colon is a part of the selector only if another colon
/// closes it ("newResidencySetWithDescriptor:error:").
std::size_t selector_length(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  return colon == std::string_view::npos ? text.size() : colon + 1;
}

Result<std::vector<std::int64_t>> parse_arguments(std::string_view text, std::string_view whole) {
  std::vector<std::int64_t> arguments;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const auto value = parse_integer(text.substr(0, comma));
    if (!value || comma == text.size() - 1) {
      return fail(Fault::usage, "query-argument", std::string(whole),
                  "expected integers separated by ',' after the selector, found '" +
                      std::string(text) + "'");
    }
    arguments.push_back(*value);
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return arguments;
}

}  // namespace

std::string to_string(const Value& value) {
  struct Printer {
    std::string operator()(std::monostate) const { return "unknown"; }
    std::string operator()(bool yes) const { return yes ? "yes" : "no"; }
    std::string operator()(std::int64_t number) const { return std::to_string(number); }
    std::string operator()(const std::string& text) const { return '\'' + text + '\''; }
  };
  return std::visit(Printer{}, value);
}

std::string to_string(const QueryKey& key) {
  std::string text = key.query;
  for (std::size_t i = 0; i < key.arguments.size(); ++i) {
    if (i > 0) text += ',';
    text += std::to_string(key.arguments[i]);
  }
  return text;
}

Result<QueryKey> parse_query_key(std::string_view text) {
  const std::size_t length = selector_length(text);
  QueryKey key{std::string(text.substr(0, length)), {}};
  bool well_formed = !key.query.empty() && key.query.front() != ':';
  for (const char c : key.query)
    well_formed = well_formed && (is_selector_character(c) || c == ':');
  if (!well_formed) {
    return fail(Fault::usage, "query-name", std::string(text),
                "expected an Objective-C selector such as supportsFamily:1007");
  }
  auto arguments = parse_arguments(text.substr(length), text);
  if (!arguments) return tl::unexpected(arguments.error());
  key.arguments = std::move(*arguments);
  return key;
}

Result<Answer> parse_answer(std::string_view text) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string_view::npos) {
    return fail(Fault::usage, "answer-form", std::string(text),
                "expected QUERY[:ARGUMENT]=VALUE, such as supportsFamily:1009=yes");
  }
  auto key = parse_query_key(text.substr(0, equals));
  if (!key) return tl::unexpected(key.error());
  const std::string_view word = text.substr(equals + 1);
  if (word == "yes" || word == "no") return Answer{std::move(*key), word == "yes"};
  if (const auto number = parse_integer(word)) return Answer{std::move(*key), *number};
  return fail(Fault::usage, "answer-value", std::string(text),
              "expected yes, no or a decimal integer after '=', found '" + std::string(word) + "'");
}

}  // namespace metaldoctor
