#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tables/answer.h"

namespace metaldoctor {

/// An expression over device answers, as the code computes it. A handle into an Expressions.
using ExprId = std::uint32_t;

enum class ExprKind : std::uint8_t {
  constant,  ///< true or false
  number,
  answer,    ///< what a device answers
  env,       ///< the environment variable is set
  os,        ///< the running OS is at least that
  contains,  ///< text of `left` contains the string
  equals,    ///< text of `left` equals the string
  negation,
  conjunction,
  disjunction,
  compare,  ///< left `op` right
  arithmetic,
  unknown,  ///< with the reason
};

enum class Compare : std::uint8_t { equal, not_equal, less, less_equal, greater, greater_equal };

/// Hash-consed expressions: equal expressions have equal handles. Building simplifies: constants,
/// double negation, repeated and complementary operands, x or (not x and y) = x or y.
/// An expression that grows too large becomes unknown('too large').
class Expressions {
 public:
  Expressions();

  ExprId constant(bool value) const { return value ? 1 : 0; }
  ExprId number(std::int64_t value);
  /// `boolean`: the answer is used as a truth value.
  ExprId answer(const QueryKey& key, bool boolean);
  ExprId env(std::string_view name);
  ExprId os(std::string_view version);  ///< "15,0,0"
  ExprId contains(ExprId text, std::string_view part);
  ExprId equals(ExprId text, std::string_view other);
  ExprId unknown(std::string_view reason);
  /// An answer that is not known which: a wrapper's, whose argument is its caller's.
  ExprId some_answer(std::string_view reason);
  ExprId negation(ExprId a);
  ExprId all_of(std::vector<ExprId> operands);
  ExprId any_of(std::vector<ExprId> operands);
  ExprId both(ExprId a, ExprId b) { return all_of({a, b}); }
  ExprId either(ExprId a, ExprId b) { return any_of({a, b}); }
  ExprId compare(Compare op, ExprId left, ExprId right);
  ExprId arithmetic(char op, ExprId left, ExprId right);
  /// condition ? a : b, of truth values.
  ExprId select(ExprId condition, ExprId a, ExprId b);

  /// Simplification stops after so many steps, until the next call: one function's worth. What is
  /// built then is right, but longer.
  void allow_steps(std::size_t steps) { budget_ = std::min(steps, total_); }
  /// Takes steps for other work of that kind; false if too few are left.
  bool spend(std::size_t steps);

  ExprKind kind(ExprId id) const { return nodes_[id].kind; }
  bool is_boolean(ExprId id) const { return nodes_[id].boolean; }
  /// True if it holds an answer, an environment variable, an OS check or a text test.
  bool is_interesting(ExprId id) const { return nodes_[id].interesting; }
  bool has_unknown(ExprId id) const { return nodes_[id].has_unknown; }
  /// True if an answer of the device decides.
  bool has_answer(ExprId id) const { return nodes_[id].has_answer; }
  std::uint32_t weight(ExprId id) const { return nodes_[id].weight; }
  std::int64_t number_of(ExprId id) const { return nodes_[id].value; }
  /// The answers in it, once each.
  std::vector<QueryKey> answers(ExprId id) const;

  /// In the grammar of tables/predicate.h.
  std::string print(ExprId id) const;

 private:
  struct Node {
    ExprKind kind = ExprKind::constant;
    Compare op = Compare::equal;
    char sign = 0;
    bool boolean = false, interesting = false, has_unknown = false, has_answer = false;
    std::uint32_t weight = 1;
    std::int64_t value = 0;
    std::uint32_t text = 0;
    std::vector<ExprId> operands;
    auto key() const { return std::tie(kind, op, sign, boolean, value, text, operands); }
  };
  ExprId add(Node node);
  ExprId junction(ExprKind kind, std::vector<ExprId> operands);
  void flatten(ExprKind kind, const std::vector<ExprId>& in, std::vector<ExprId>& out) const;
  bool absorb(ExprKind kind, std::vector<ExprId>& operands);
  bool factor(ExprKind kind, std::vector<ExprId>& operands);
  ExprId assume(ExprId id, ExprId fact, bool truth);
  std::uint32_t intern(std::string_view text);
  ExprId leaf(ExprKind kind, std::string_view text, bool boolean);
  std::string print(ExprId id, int binding) const;
  std::string print_junction(const Node& node, int binding) const;

  struct Less {
    bool operator()(const Node& a, const Node& b) const { return a.key() < b.key(); }
  };
  std::size_t budget_ = 100'000;   ///< of this function
  std::size_t total_ = 8'000'000;  ///< of this image
  std::vector<Node> nodes_;
  std::map<Node, ExprId, Less> index_;
  std::vector<std::string> texts_;
  std::map<std::string, std::uint32_t, std::less<>> text_index_;
  std::vector<QueryKey> keys_;
  std::map<QueryKey, std::uint32_t> key_index_;
};

}  // namespace metaldoctor
