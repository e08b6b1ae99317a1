#pragma once
#include <cstdint>
#include <string_view>

#include "scanners/simulator/host_abi.h"
#include "scanners/simulator/objc_model.h"

namespace metaldoctor {

struct SimLoaded;

/// A method that the host stands in for.
struct HostMethod {
  std::string_view cls, superclass;
  bool is_class_method = false;
  std::string_view selector, types;
  void (*handler)(Call&) = nullptr;
};

/// NSObject, strings, numbers, collections and the rest of Foundation that probing code uses.
void register_foundation(Process& process);
/// __objc_classlist of an image.
void register_program_classes(Process& process, const SimLoaded& image);
/// The memory of a datum that images bind to.
std::uint64_t make_datum(Process& process, const HostDatum& datum);

/// objc_msgSend: `call` holds receiver and selector; `start` is where the search begins
/// (objc_msgSendSuper2), null = the receiver's class. `quiet`: the message was recorded already.
void dispatch_message(Call& call, ObjcClass* start, bool quiet = false);
/// Whether `receiver` would answer a message: respondsToSelector:.
bool responds(Process& process, std::uint64_t receiver, std::string_view selector);
/// The class of anything that can receive messages; `is_class`: the receiver is a class itself.
ObjcClass* class_of(Process& process, std::uint64_t receiver, bool& is_class);

}  // namespace metaldoctor
