#pragma once
#include <map>
#include <string_view>
#include <vector>

#include "scanners/code/arch.h"
#include "scanners/code/summary.h"
#include "scanners/code/vocabulary.h"
#include "scanners/macho/fixups.h"
#include "scanners/macho/function_starts.h"
#include "scanners/macho/image.h"
#include "scanners/macho/objc.h"
#include "scanners/macho/relocations.h"

namespace metaldoctor {

/// How the code comes to a query.
enum class Route : std::uint8_t {
  stub,                 ///< a call of an __objc_stubs entry
  selref,               ///< selector loaded from __objc_selrefs, objc_msgSend
  registered_selector,  ///< selector that the program registered by its text, objc_msgSend
  symbol,               ///< an object file's undefined symbol _objc_msgSend$SELECTOR
  function,             ///< a C function
  looked_up,            ///< a C function that dlsym gave
  wrapper,              ///< a function of the image that sends what it is told to
  thunk,                ///< the same, through a jump that binds arguments
};

/// What a branch goes to, or what a pointer slot holds.
struct Target {
  const Selector* selector = nullptr;  ///< known selector; else see name
  const Function* function = nullptr;  ///< known C function
  std::string_view name;               ///< selector or symbol, known to the vocabulary or not
  bool sends = false;                  ///< an Objective-C stub: objc_msgSend with `name`
  bool imported = false;
  Route route = Route::stub;
};

/// What an image offers to its code: stubs, slots and function starts, resolved to names once.
class Program {
 public:
  static Result<Program> read(const Image& image, const Fixups& fixups, const Vocabulary& words);

  const Image& image() const { return *image_; }
  const Arch& arch() const { return *arch_; }
  const Fixups& fixups() const { return *fixups_; }
  const Vocabulary& words() const { return *words_; }
  const FunctionStarts& functions() const { return functions_; }

  /// What the code at `address` is: an Objective-C stub or an import stub.
  const Target* stub(std::uint64_t address) const { return find(stubs_, address); }
  /// What a slot holds: a selector (selref or registered global) or an imported function.
  const Target* slot(std::uint64_t address) const { return find(slots_, address); }
  /// Object files: what the pointer at `address`, or an instruction, refers to by a symbol.
  const Relocation* relocation(std::uint64_t address, std::uint8_t length = 1) const;
  const Relocation* relocation(const Insn& insn) const {
    return relocations_.empty() ? nullptr : relocation(insn.address, insn.length);
  }
  /// The import or Objective-C stub that a relocation's symbol will become.
  const Target* symbol_target(std::string_view symbol) const;

  /// All stubs and slots, by address.
  using Targets = std::vector<std::pair<std::uint64_t, Target>>;
  const Targets& stubs() const { return stubs_; }
  const Targets& slots() const { return slots_; }
  const std::vector<Relocation>& relocations() const { return relocations_; }

  /// A selector that the code registers by its text; the pointer stays valid.
  const Target* registered(std::string_view selector) const;
  /// Adds globals that hold registered selectors, and functions that were looked up by name.
  void add_registered(const std::map<std::uint64_t, std::string_view>& globals);
  void add_looked_up(const std::map<std::uint64_t, const Target*>& pointers);
  /// A function of interest that the code looks up by its name, without the underscore.
  const Target* looked_up(std::string_view name) const;

  /// What functions of the image do for their callers.
  const Summary* summary(std::uint64_t function) const {
    const auto found = summaries_.find(function);
    return found == summaries_.end() ? nullptr : &found->second;
  }
  void set_summary(std::uint64_t function, Summary summary);
  /// Whether a function of the image registers selectors for its callers.
  bool registers_selectors() const { return registers_; }

  /// Where string sections hold the text of a selector that is a query, and which.
  const std::vector<std::uint64_t>& selector_texts() const { return selector_texts_; }
  const std::vector<std::string_view>& selectors_in_text() const { return selectors_in_text_; }
  /// Where they hold the name of a function that gives devices.
  const std::vector<std::uint64_t>& function_texts() const { return function_texts_; }

  /// The interesting selectors and functions that something of the image names.
  bool reaches(std::string_view selector) const;
  std::size_t undecoded_stub_words() const { return undecoded_; }

 private:
  static const Target* find(const Targets& targets, std::uint64_t address);
  Target selector_target(std::string_view name, Route route) const;
  Target import_target(std::string_view name) const;
  Result<void> read_object();
  void read_texts();

  const Image* image_ = nullptr;
  const Arch* arch_ = &kArm64;
  const Fixups* fixups_ = nullptr;
  const Vocabulary* words_ = nullptr;
  FunctionStarts functions_;
  Targets stubs_, slots_;
  std::vector<Relocation> relocations_;                    ///< object files, sorted
  std::map<std::string_view, Target> symbol_targets_;      ///< object files
  mutable std::map<std::string_view, Target> registered_;  ///< made on demand
  mutable std::map<std::string_view, Target> looked_up_;   ///< made on demand
  std::map<std::uint64_t, Summary> summaries_;
  bool registers_ = false;
  std::vector<std::uint64_t> selector_texts_, function_texts_;
  std::vector<std::string_view> selectors_in_text_;
  std::size_t undecoded_ = 0;
};

}  // namespace metaldoctor
