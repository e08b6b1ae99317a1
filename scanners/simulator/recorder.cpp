#include "scanners/simulator/recorder.h"

#include <algorithm>
#include <tuple>

namespace metaldoctor {
namespace {

constexpr std::size_t max_queries = 100'000;
constexpr std::size_t max_messages = 20'000;

auto identity(const SimQuery& query) {
  return std::tie(query.key, query.answer, query.text, query.caller, query.device,
                  query.from_metal);
}

}  // namespace

std::string_view to_string(Fidelity fidelity) {
  constexpr std::string_view words[] = {"exact", "constant", "assumed", "unknown"};
  return words[static_cast<std::size_t>(fidelity)];
}

std::optional<std::size_t> Recorder::query(SimQuery query) {
  if (queries_.size() >= max_queries) {
    assume("more questions were asked than are recorded");
    return std::nullopt;
  }
  queries_.push_back(std::move(query));
  return queries_.size() - 1;
}

void Recorder::answered(std::size_t index, std::int64_t answer) {
  queries_[index].answer = answer;
}

void Recorder::answered_text(std::size_t index, std::string text) {
  queries_[index].text = std::move(text);
}

void Recorder::message(std::string text) {
  if (messages_.size() < max_messages || messages_.contains(text))
    ++messages_[std::move(text)];
  else
    assume("more different messages were sent than are recorded");
}

bool Recorder::log(const std::string& stream, std::string_view text) {
  if (text.size() > log_left_) return false;
  log_left_ -= text.size();
  std::string& line = partial_[stream];
  for (const char c : text) {
    if (c == '\n') {
      lines_.emplace_back(stream, std::move(line));
      line.clear();
    } else {
      line += c;
    }
  }
  return true;
}

void Recorder::flush_lines() {
  for (auto& [stream, line] : partial_)
    if (!line.empty()) lines_.emplace_back(stream, std::move(line));
  partial_.clear();
}

std::vector<SimQuery> Recorder::merged_queries() {
  std::vector<SimQuery> merged;
  std::map<std::string, std::vector<std::size_t>> seen;
  for (SimQuery& query : queries_) {
    auto& candidates = seen[query.caller];
    const auto same = std::ranges::find_if(
        candidates, [&](std::size_t i) { return identity(merged[i]) == identity(query); });
    if (same != candidates.end()) {
      ++merged[*same].count;
      continue;
    }
    candidates.push_back(merged.size());
    merged.push_back(std::move(query));
  }
  return merged;
}

}  // namespace metaldoctor
