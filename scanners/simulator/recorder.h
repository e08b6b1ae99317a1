#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "scanners/simulator/protocol.h"

namespace metaldoctor {

/// Collects what a run does. Everything is bounded: what does not fit is counted as dropped and
/// said among the assumptions.
class Recorder {
 public:
  explicit Recorder(const SimBudget& budget) : log_left_(budget.log_bytes) {}

  /// Index for answered(), or none when the list is full.
  std::optional<std::size_t> query(SimQuery query);
  void answered(std::size_t index, std::int64_t answer);
  void answered_text(std::size_t index, std::string text);
  void message(std::string text);
  /// `text` may hold several lines or a part of one. False when the log budget is spent.
  bool log(const std::string& stream, std::string_view text);
  void assume(std::string text) { assumptions_.insert(std::move(text)); }
  void event(std::string text) {
    if (events_.size() < max_events) events_.push_back(std::move(text));
  }
  void metal_asks(std::int64_t family) { ++metal_queries_[family]; }
  void feature(std::string name) {
    if (features_.size() < max_events) features_.push_back(std::move(name));
  }

  /// Moves everything into the trace; unfinished log lines become lines.
  template <typename Comparable>
  void finish(Trace& trace, Comparable&& comparable) {
    flush_lines();
    trace.queries = merged_queries();
    for (auto& [text, count] : messages_) trace.messages.push_back({text, count});
    for (auto& [stream, text] : lines_) trace.log.push_back({stream, text, comparable(text)});
    trace.assumptions = {assumptions_.begin(), assumptions_.end()};
    trace.events = std::move(events_);
    trace.metal_family_queries = std::move(metal_queries_);
    trace.metal_features = std::move(features_);
  }

 private:
  static constexpr std::size_t max_events = 10'000;
  void flush_lines();
  std::vector<SimQuery> merged_queries();

  std::uint64_t log_left_;
  std::vector<SimQuery> queries_;
  std::map<std::string, std::uint64_t> messages_;
  std::vector<std::pair<std::string, std::string>> lines_;
  std::map<std::string, std::string> partial_;  ///< stream -> unfinished line
  std::set<std::string> assumptions_;
  std::vector<std::string> events_;
  std::map<std::int64_t, std::uint64_t> metal_queries_;
  std::vector<std::string> features_;
};

}  // namespace metaldoctor
