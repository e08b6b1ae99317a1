#pragma once
#include <array>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scanners/simulator/device_model.h"
#include "scanners/simulator/host_abi.h"
#include "scanners/simulator/image_set.h"
#include "scanners/simulator/machine.h"
#include "scanners/simulator/memory.h"
#include "scanners/simulator/objc_model.h"
#include "scanners/simulator/protocol.h"
#include "scanners/simulator/recorder.h"
#include "scanners/simulator/runtime_tables.h"

namespace metaldoctor {

/// Which library of the system a host function belongs to: what dladdr says of its address, and
/// where calls from the host seem to come from.
/// `program`: the questions of an `ask` step come from a program outside the shared cache.
enum class SystemLibrary { system, objc, foundation, metal, program };
std::string_view library_path(SystemLibrary library);

/// Where execution leaves the engine: an import, a method of ours, or the end of a call.
struct Trap {
  std::string name;
  SystemLibrary library = SystemLibrary::system;
  const HostFunction* function = nullptr;  ///< null: unknown import, or one of the below
  void (*method)(Call&) = nullptr;         ///< an Objective-C method of ours
  ObjcClass* cls = nullptr;                ///< of the method
  const RuntimeMethod* runtime = nullptr;  ///< of the device classes
  bool is_return = false;
  bool large_structure = false;  ///< x86_64: the result's place is the first argument
  std::uint64_t calls = 0;
};

/// A block that the program gave to a queue, a group or a thread.
struct QueuedWork {
  std::uint64_t function = 0, argument = 0, group = 0;
};

/// Everything of one simulated process. Host functions are free functions of a Call and reach the
/// rest from here.
class Process {
 public:
  Process(const Tables& tables, const RuntimeTables& runtime, const SimRequest& request,
          const SimRun& run, ImageSet& images, Machine& machine);

  /// Maps, binds and registers classes. An error: an image that cannot be loaded at all.
  Result<void> load(const SimHost& host);
  /// Runs all steps; afterwards finish() gives the trace.
  void run_steps();
  Trace finish();

  /// Ends the run. The first stop counts.
  void stop(std::string kind, std::string text, std::uint64_t where);
  bool stopped() const { return stop_.has_value(); }
  void exit(int status);
  void assume(std::string text) { recorder.assume(std::move(text)); }

  /// Calls the program from the host; none when the run stopped. The caller appears to be in
  /// `library`. Registers that the ABI lets a callee change are lost.
  std::optional<std::uint64_t> call(std::uint64_t function,
                                    std::span<const std::uint64_t> arguments,
                                    SystemLibrary library = SystemLibrary::system);
  std::optional<std::uint64_t> call(std::uint64_t function,
                                    std::initializer_list<std::uint64_t> arguments,
                                    SystemLibrary library = SystemLibrary::system) {
    return call(function, std::span(arguments.begin(), arguments.size()), library);
  }
  /// Sends a message from the host: to a method of ours or the program's.
  std::uint64_t send(std::uint64_t receiver, std::string_view selector,
                     std::initializer_list<std::uint64_t> arguments = {},
                     SystemLibrary library = SystemLibrary::metal);

  std::uint64_t add_trap(Trap trap);
  Trap* trap_at(std::uint64_t address);
  /// Where the system's libraries (our traps) seem to lie: first address and size.
  static std::pair<std::uint64_t, std::uint64_t> shared_cache();
  /// The Mach-O header of the library or program that a trap belongs to.
  static std::uint64_t header_of(std::uint64_t trap);
  /// The address that an import or dlsym gives; unknown names get a trap of their own.
  std::uint64_t symbol_address(std::string_view name);
  /// 0 when neither an image nor a host function or datum has the name.
  std::uint64_t known_symbol(std::string_view name);

  std::uint64_t allocate(std::uint64_t size, std::uint64_t alignment = 16);
  std::uint64_t allocate_text(std::string_view text);
  /// Memory of the host's own for objects; false and a stop when it exceeds the budget.
  bool charge(std::uint64_t bytes);
  /// A name for an address that is the same in every run: image + offset, heap block, object.
  std::string name_of(std::uint64_t address);
  /// Addresses in a text replaced by their names.
  std::string comparable(std::string_view text);
  /// Return address of the import that is running.
  std::uint64_t caller() const { return machine.return_address(memory); }
  void print(std::string_view stream, std::string_view text);
  void queue(const QueuedWork& work);
  void run_queued(std::uint64_t group);  ///< 0 = work of no group

  ObjcObject* new_object(std::string_view class_name, std::string origin);
  std::uint64_t new_string(std::string text);
  /// The text of an NSString: ours, or a constant in an image.
  std::optional<std::string> string_of(std::uint64_t object);
  bool is_objc_pointer(std::uint64_t address);

  const Tables& tables;
  const RuntimeTables& runtime;
  const SimRequest& request;
  const SimRun& run;
  ImageSet& images;
  Machine& machine;
  Memory memory;
  Heap heap;
  ObjcModel objc;
  Recorder recorder;
  DeviceModel devices;
  std::map<std::string, std::string> environment;
  std::map<std::string, std::uint64_t> environment_texts;
  std::map<int, std::pair<std::string, std::uint64_t>> open_files;  ///< fd -> path, position
  std::map<std::string, std::string> files_written;
  std::deque<QueuedWork> queued;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> at_exit;  ///< function, argument
  std::map<std::uint64_t, std::uint64_t> thread_values;          ///< pthread and TLV keys
  std::uint64_t next_handle = 0x7b31;
  std::uint64_t errno_address = 0;
  std::vector<std::uint64_t> environ_texts;

 private:
  friend class Steps;
  bool map_header(std::uint64_t address, std::uint32_t type, std::uint32_t flags);
  void register_classes();
  std::uint64_t bind(const SimLoaded& image, const Import& import);
  bool run_until(std::uint64_t return_trap, std::uint64_t stack);
  void enter_trap(Trap& trap);
  void stop_at(const Machine::Exit& exit);

  std::optional<SimStop> stop_;
  std::optional<int> exit_status_;
  std::deque<Trap> traps_;
  std::map<std::string, std::uint64_t, std::less<>> symbols_;
  std::array<std::uint64_t, 5> return_traps_{};
  Trap program_trap_;
  unsigned depth_ = 0;
  std::uint64_t charged_ = 0;
  std::vector<std::uint64_t> results_;
};

}  // namespace metaldoctor
