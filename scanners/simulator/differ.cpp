#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "scanners/simulator/protocol.h"

namespace metaldoctor {
namespace {

using Byte = SimDifference::Byte;
using Line = SimDifference::Line;
constexpr std::uint64_t word = 8;
constexpr std::size_t max_listed = 10'000;

/// All bytes of one object that a run wrote, by offset.
struct Written {
  std::vector<std::pair<std::uint64_t, std::uint8_t>> bytes;
  std::map<std::uint64_t, std::string> pointers;
};
using Objects = std::map<std::string, Written>;

Objects objects_of(const Trace& trace) {
  Objects objects;
  for (const SimWrite& write : trace.writes) {
    Written& written = objects[write.object];
    for (std::size_t i = 0; i < write.bytes.size(); ++i)
      written.bytes.emplace_back(write.offset + i, write.bytes[i]);
    written.pointers.insert(write.pointers.begin(), write.pointers.end());
  }
  for (auto& [object, written] : objects) std::ranges::sort(written.bytes);
  return objects;
}

std::string place(const std::string& object, std::uint64_t offset) {
  return fmt::format("{}+{:#x}", object, offset);
}

std::string shown(std::optional<std::uint8_t> byte) {
  return byte ? fmt::format("{:02x}", *byte) : "-";
}

/// Walks over the bytes of both runs side by side.
void compare_object(const std::string& object, const Written& before, const Written& after,
                    std::vector<Byte>& out) {
  auto a = before.bytes.begin(), b = after.bytes.begin();
  std::optional<std::uint64_t> reported;  // a pointer is one difference, not eight
  while ((a != before.bytes.end() || b != after.bytes.end()) && out.size() < max_listed) {
    const bool in_a = a != before.bytes.end() && (b == after.bytes.end() || a->first <= b->first);
    const bool in_b = b != after.bytes.end() && (a == before.bytes.end() || b->first <= a->first);
    const std::uint64_t offset = in_a ? a->first : b->first;
    const auto old_byte = in_a ? std::optional(a++->second) : std::nullopt;
    const auto new_byte = in_b ? std::optional(b++->second) : std::nullopt;
    const std::uint64_t start = offset / word * word;
    const auto old_pointer = before.pointers.find(start), new_pointer = after.pointers.find(start);
    if (old_pointer != before.pointers.end() && new_pointer != after.pointers.end()) {
      if (old_pointer->second == new_pointer->second || reported == start) continue;
      out.push_back({place(object, start), old_pointer->second, new_pointer->second});
      reported = start;
    } else if (old_byte != new_byte) {
      out.push_back({place(object, offset), shown(old_byte), shown(new_byte)});
    }
  }
}

void compare_writes(const Trace& from, const Trace& to, std::vector<Byte>& out) {
  const Objects before = objects_of(from), after = objects_of(to);
  const auto size = [](const Written& w) { return fmt::format("{} bytes", w.bytes.size()); };
  for (const auto& [object, written] : before) {
    const auto other = after.find(object);
    if (other != after.end())
      compare_object(object, written, other->second, out);
    else
      out.push_back({object, size(written), "-"});
  }
  for (const auto& [object, written] : after)
    if (!before.contains(object)) out.push_back({object, "-", size(written)});
}

/// Longest common subsequence; what lies between two common lines is paired in order.
std::vector<Line> compare_lines(const std::vector<SimLogLine>& before,
                                const std::vector<SimLogLine>& after) {
  const auto same = [&](std::size_t i, std::size_t j) {
    return before[i].comparable == after[j].comparable && before[i].stream == after[j].stream;
  };
  std::size_t first = 0, last_a = before.size(), last_b = after.size();
  while (first < last_a && first < last_b && same(first, first)) ++first;
  while (last_a > first && last_b > first && same(last_a - 1, last_b - 1)) --last_a, --last_b;
  const std::size_t rows = last_a - first, columns = last_b - first;
  constexpr std::size_t most = std::size_t{16} << 20;
  std::vector<Line> out;
  if (rows * columns > most) {
    out.push_back({fmt::format("{} lines", rows), fmt::format("{} lines", columns)});
    return out;
  }
  std::vector<std::uint32_t> length((rows + 1) * (columns + 1));
  const auto at = [&](std::size_t i, std::size_t j) -> std::uint32_t& {
    return length[i * (columns + 1) + j];
  };
  for (std::size_t i = rows; i-- > 0;)
    for (std::size_t j = columns; j-- > 0;)
      at(i, j) =
          same(first + i, first + j) ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
  std::vector<std::string> removed, added;
  const auto flush = [&] {
    for (std::size_t i = 0; i < std::max(removed.size(), added.size()); ++i)
      out.push_back({i < removed.size() ? removed[i] : "", i < added.size() ? added[i] : ""});
    removed.clear();
    added.clear();
  };
  for (std::size_t i = 0, j = 0; i < rows || j < columns;) {
    if (i < rows && j < columns && same(first + i, first + j)) {
      flush();
      ++i, ++j;
    } else if (j == columns || (i < rows && at(i + 1, j) >= at(i, j + 1))) {
      removed.push_back(before[first + i++].text);
    } else {
      added.push_back(after[first + j++].text);
    }
  }
  flush();
  return out;
}

std::vector<Line> compare_messages(const Trace& from, const Trace& to) {
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> counts;
  for (const SimMessage& message : from.messages) counts[message.text].first = message.count;
  for (const SimMessage& message : to.messages) counts[message.text].second = message.count;
  std::vector<Line> out;
  const auto times = [](const std::string& text, std::uint64_t count) {
    return count == 0 ? std::string{} : fmt::format("{} x {}", count, text);
  };
  for (const auto& [text, count] : counts)
    if (count.first != count.second && out.size() < max_listed)
      out.push_back({times(text, count.first), times(text, count.second)});
  return out;
}

std::vector<std::string> compare_queries(const Trace& from, const Trace& to) {
  using Key = std::tuple<std::size_t, QueryKey>;
  const auto answers = [](const Trace& trace) {
    std::map<Key, std::string> all;
    for (const SimQuery& query : trace.queries)
      all.emplace(Key{query.device, query.key},
                  query.text.empty() ? std::to_string(query.answer) : query.text);
    return all;
  };
  const auto before = answers(from), after = answers(to);
  std::vector<std::string> out;
  for (const auto& [key, answer] : before) {
    const auto other = after.find(key);
    if (other != after.end() && other->second == answer) continue;
    out.push_back(fmt::format("device {}: {}: {} -> {}", std::get<0>(key),
                              to_string(std::get<1>(key)), answer,
                              other == after.end() ? "not asked" : other->second));
  }
  for (const auto& [key, answer] : after)
    if (!before.contains(key))
      out.push_back(fmt::format("device {}: {}: not asked -> {}", std::get<0>(key),
                                to_string(std::get<1>(key)), answer));
  return out;
}

std::vector<std::string> missing_from(std::vector<std::string> these,
                                      std::vector<std::string> those) {
  std::ranges::sort(these);
  std::ranges::sort(those);
  std::vector<std::string> out;
  std::ranges::set_difference(these, those, std::back_inserter(out));
  return out;
}

std::string first_branch(const Trace& from, const Trace& to) {
  const std::size_t common = std::min(from.walk.size(), to.walk.size());
  for (std::size_t i = 0; i < common; ++i)
    if (from.path[from.walk[i]] != to.path[to.walk[i]])
      return i == 0 ? std::string("start") : from.path[from.walk[i - 1]];
  if (from.walk.size() == to.walk.size() || common == 0) return {};
  return from.path[from.walk[common - 1]];
}

}  // namespace

SimDifference compare_traces(const Trace& from, const Trace& to) {
  SimDifference difference;
  difference.from = from.id;
  difference.to = to.id;
  compare_writes(from, to, difference.bytes);
  difference.log = compare_lines(from.log, to.log);
  difference.messages = compare_messages(from, to);
  difference.queries_changed = compare_queries(from, to);
  difference.features_gained = missing_from(to.metal_features, from.metal_features);
  difference.features_lost = missing_from(from.metal_features, to.metal_features);
  difference.first_branch = first_branch(from, to);
  difference.only_before = missing_from(from.path, to.path);
  difference.only_after = missing_from(to.path, from.path);
  using Verdict = SimDifference::Verdict;
  const bool differs = !difference.bytes.empty() || !difference.log.empty() ||
                       !difference.messages.empty() || from.results.size() != to.results.size() ||
                       from.exit_status != to.exit_status;
  // A run that was stopped may have been about to do what the other did.
  const bool whole = !from.stop && !to.stop;
  difference.verdict = !whole    ? Verdict::inconclusive
                       : differs ? Verdict::differs
                                 : Verdict::no_difference_observed;
  return difference;
}

}  // namespace metaldoctor
