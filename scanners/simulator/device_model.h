#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "scanners/simulator/host_abi.h"
#include "scanners/simulator/objc_model.h"
#include "scanners/simulator/protocol.h"
#include "scanners/simulator/runtime_tables.h"

namespace metaldoctor {

/// Metal's devices: the class tree of metal-runtime.json with answers from captures, made in the
/// order in which Metal makes them at the first factory call.
class DeviceModel {
 public:
  explicit DeviceModel(Process& process) : process_(process) {}

  /// Metal.framework is there: its classes can be found by name.
  bool loaded() const { return loaded_; }
  void load_metal();
  /// The devices that factories return, wrapped ones as wrappers; made on first use.
  const std::vector<std::uint64_t>& array();

  /// The capture's answer, or the run's instead; unknown is 0 and an assumption.
  std::int64_t answer(std::size_t device, const QueryKey& key);
  std::string text_answer(std::size_t device, std::string_view query);
  /// Whether the families of this device were set up (initGPUFamilySupport ran).
  bool families_ready(std::size_t device) const { return ready_[device]; }

  /// Notes a question that is about to be answered by `object`'s method; `caller` is where the
  /// answer goes.
  void note_question(const ObjcObject& object, std::string_view selector, Call& call);

 private:
  friend struct DeviceMethods;
  ObjcClass& add_class(const RuntimeClass& row);
  void add_method(ObjcClass& cls, const RuntimeMethod& method);
  void add_classes_of(std::string_view image);
  ObjcClass& driver_class(std::size_t device);
  void add_query_methods(ObjcClass& driver);
  std::uint64_t make_device(std::size_t device);
  std::uint64_t wrap(std::size_t device, std::uint64_t raw);
  void take_snapshot(std::uint64_t raw);
  const Value* find_answer(std::size_t device, const QueryKey& key) const;

  Process& process_;
  bool loaded_ = false, made_ = false;
  std::vector<std::uint64_t> array_;
  std::vector<bool> ready_;
  std::deque<RuntimeMethod> extra_;  ///< methods that only the query table knows
};

}  // namespace metaldoctor
