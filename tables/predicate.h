#pragma once
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tables/answer.h"
#include "tables/diagnostic.h"
#include "tables/document.h"

namespace metaldoctor {

/// Kleene's strong three-valued logic.
enum class Truth { no, yes, unknown };
Truth operator!(Truth a);
Truth operator&&(Truth a, Truth b);
Truth operator||(Truth a, Truth b);
std::string_view to_string(Truth truth);  ///< "no", "yes", "unknown"

/// What kind of thing an atom asks, and so who could change it.
enum class AtomKind {
  answer,  ///< a device answer; `key` is set. Whether it can be overridden is Query::overridable
  driver,  ///< a fact about the driver: rset_ok(), arg_encoder_ok(), probe_compile('x')
  os,      ///< os(major[,minor[,patch]]): the running macOS is at least that
  env,     ///< env('X'): the environment variable is set
  build,   ///< build('F'): a compile-time flag of the program
};

/// A leaf of a predicate, in canonical form: aliases are resolved, so that family(1007) and
/// answer('supportsFamily:', 1007) are the same atom.
struct Atom {
  AtomKind kind = AtomKind::answer;
  QueryKey key;      ///< kind == answer
  std::string name;  ///< other kinds: "rset_ok", "probe_compile:tensor", "GGML_METAL_BF16_DISABLE",
                     ///< "SDK15", "15.0"
  friend auto operator<=>(const Atom&, const Atom&) = default;
};
std::string to_string(const Atom& atom);

/// Gives the value of every atom; unknown is an answer too.
using World = std::function<Value(const Atom&)>;

/// The one expression type of app rules, hazards, gates, --assume and recommend.
///
/// Grammar (loosest binding first):
///   or-expr   := and-expr { "or" and-expr }
///   and-expr  := not-expr { "and" not-expr }
///   not-expr  := "not" not-expr | comparison
///   comparison:= sum [ ("==" | "!=" | "<" | "<=" | ">" | ">=") sum ]
///   sum       := product { ("+" | "-") product }
///   product   := primary { ("*" | "/") primary }
///   primary   := integer | 'string' | "true" | "false" | call | "(" or-expr ")"
///   call      := name "(" [ literal { "," literal } ] ")"
/// Calls: answer('selector' [, integer...]); the aliases family(n), feature_set(n), tgmem(),
/// unified(), raytracing(), barycentric(), argtier() (argumentBuffersSupport + 1),
/// location_external() (location == 2), name_has('s') (contains(answer('name'), 's')), arch_gen()
/// and arch_suffix() (of architecture.name, by MLX's rule); contains(expr, 's'); os(a[,b[,c]]),
/// env('X'), build('F'), rset_ok(), arg_encoder_ok(), probe_compile('x'), unknown('reason').
/// JSON form: {"q":name,"args":[...]}, {"and":[...]}, {"or":[...]}, {"not":x},
/// {"cmp":op,"l":x,"r":x}, {"arith":op,"l":x,"r":x}, {"const":v}.
///
/// The text is at most 64 KiB, the tree at most 200 deep and 10,000 nodes large; integers lie in
/// -2^53..2^53 and may carry a sign; in strings \' and \\ stand for ' and \. Aliases are resolved
/// on reading, so that family(1007) and answer('supportsFamily:', 1007) are the same tree; a list
/// of one expression is that expression.
/// A Predicate is an immutable value; copies share the tree.
class Predicate {
 public:
  struct Node;

  /// The constant true.
  Predicate();
  /// `where` names the text in messages; they carry the offset in it.
  static Result<Predicate> parse(std::string_view text, std::string_view where = "predicate");
  static Result<Predicate> from_json(const Json& json, std::string_view where = "predicate");

  Json to_json() const;
  /// The shortest spelling that parses back to the same tree.
  std::string print() const;

  /// Integer division truncates. Unknown are: division by zero, overflow, a comparison of unlike
  /// kinds, an order of anything but integers, a number or text where a truth value is needed,
  /// and anything that needs an unknown value.
  Truth evaluate(const World& world) const;
  Value value(const World& world) const;

  /// Every atom in the expression, whether or not its value matters.
  std::set<Atom> atoms() const;
  /// The reasons of its unknown('reason') parts.
  std::set<std::string> unknown_reasons() const;

  bool operator==(const Predicate& other) const;  ///< same tree

 private:
  explicit Predicate(std::shared_ptr<const Node> root);
  std::shared_ptr<const Node> root_;
};

}  // namespace metaldoctor
