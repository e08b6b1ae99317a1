#pragma once
// Property lists, through libplist. It has no bounds of its own: deep nesting and shared containers
// would end the process or eat its memory, so those are refused before it sees a byte.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tables/diagnostic.h"

namespace metaldoctor {

struct PlistLimits {
  std::size_t bytes = std::size_t{1} << 20;
  std::size_t values = 20'000;
  std::size_t depth = 64;
  /// Bytes that a binary list has when everything it shares is written out.
  std::size_t expanded = std::size_t{4} << 20;
};

/// A property list whose root is a dictionary: Info.plist, a launch agent, entitlements.
class Plist {
 public:
  /// Reads XML or binary. `name` is for messages.
  static Result<Plist> read(std::string_view bytes, const std::string& name,
                            const PlistLimits& limits = {});
  static Plist empty();  ///< written as XML
  Plist(Plist&&) noexcept;
  Plist& operator=(Plist&&) noexcept;
  ~Plist();

  /// Every value of the root as one line of text with sorted keys: true, 12, "text", [..], {..}.
  std::map<std::string, std::string> values() const;
  /// `key` of the root, or of the dictionary `in` of the root.
  std::optional<std::string> text(const std::string& key) const;
  std::optional<std::string> text(const std::string& in, const std::string& key) const;
  /// An array of texts; none where it is anything else.
  std::optional<std::vector<std::string>> texts(const std::string& key) const;
  bool has(const std::string& key) const;
  bool has_dictionary(const std::string& key) const;

  void set_text(const std::string& key, const std::string& value);
  /// Makes the dictionary `in` when the root has none.
  void set_text(const std::string& in, const std::string& key, const std::string& value);
  void set_truth(const std::string& key, bool value);
  void set_texts(const std::string& key, const std::vector<std::string>& values);

  std::string write() const;  ///< in the form that was read

 private:
  struct Impl;
  explicit Plist(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// How a text stands in Plist::values().
std::string quoted_text(std::string_view text);

/// UTF-8 without the control characters that XML has no spelling for.
bool fits_plist(std::string_view text);

}  // namespace metaldoctor
