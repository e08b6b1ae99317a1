#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "scanners/simulator/protocol.h"

namespace metaldoctor {

class Process;
struct Trap;
class Call;

/// A function of macOS that the host stands in for.
struct HostFunction {
  std::string_view name;  ///< "_malloc"
  Fidelity fidelity = Fidelity::exact;
  void (*handler)(Call&) = nullptr;  ///< null: `value` is the result
  std::uint64_t value = 0;
};
/// By name; nullptr if the host has no such function.
const HostFunction* host_function(std::string_view name);

/// A datum of macOS that images bind to.
struct HostDatum {
  enum class Content { zeros, file, object, text, word };
  std::string_view name;
  std::uint64_t size = 8;
  Content content = Content::zeros;
  std::uint64_t value = 0;
  std::string_view text;
};
const HostDatum* host_datum(std::string_view name);

/// Variable arguments: Apple's arm64 ABI puts each into an 8-byte stack slot; System V uses what
/// is left of the registers first.
class VarArgs {
 public:
  /// Of the running import, after `fixed` named arguments.
  static VarArgs of_call(Call& call, unsigned fixed);
  /// From a va_list.
  static VarArgs of_list(Process& process, std::uint64_t list);
  std::uint64_t integer();
  double real();

 private:
  explicit VarArgs(Process& process) : process_(&process) {}
  std::uint64_t slot();
  Process* process_;
  std::uint64_t stack_ = 0;
  bool registers_ = false;  ///< x86_64: of the running call
  unsigned integers_ = 0, reals_ = 0;
  std::uint64_t save_area_ = 0;  ///< x86_64 va_list
};

/// One call of a host function: arguments in, result out.
class Call {
 public:
  /// `shift` 1: objc_msgSend_stret, where the first argument is the place of the result.
  Call(Process& owner, Trap& callee, unsigned shift = 0);

  std::uint64_t arg(unsigned index) const;  ///< integer argument, registers first, then stack
  void set_arg(unsigned index, std::uint64_t value);
  double real(unsigned index) const;
  float single(unsigned index) const;
  /// A C string argument; stops the run when it is none.
  std::string text(unsigned index);
  void returns(std::uint64_t value);
  void returns_real(double value);
  void returns_single(float value);
  void returns_pair(std::uint64_t first, std::uint64_t second);
  /// A structure of up to 64 bytes, by the rules of the architecture.
  void returns_structure(std::span<const std::uint64_t> words);
  /// Continues in the program with the arguments and return address as they are.
  void jump(std::uint64_t address);
  bool jumped() const { return jumped_; }
  bool large_structure() const { return shift_ != 0; }

  /// Checked access: a failure stops the run with the name of the function.
  template <typename T>
  T load(std::uint64_t address);
  template <typename T>
  void store(std::uint64_t address, T value);
  void fault(std::string_view what, std::uint64_t address);

  Process& process;
  Trap& trap;

 private:
  friend class VarArgs;
  unsigned shift_;
  /// As they were at entry: calls back into the program change the registers.
  std::array<std::uint64_t, 8> registers_{};
  bool jumped_ = false;
};

/// Whether an x86_64 method with this encoding gets the place of its result as first argument: the
/// structures of the tables are of three words, NSRange is of two.
constexpr bool returns_through_memory(std::string_view types) {
  return types.starts_with("{?=");
}

/// printf's formatting: also %@ for objects.
std::string format_text(Process& process, std::string_view format, VarArgs& arguments);

}  // namespace metaldoctor
