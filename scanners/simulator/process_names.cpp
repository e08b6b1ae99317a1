// The parts of Process that name things and make small objects.
#include <fmt/format.h>

#include <charconv>

#include "scanners/simulator/process.h"

namespace metaldoctor {

std::uint64_t Process::allocate(std::uint64_t size, std::uint64_t alignment) {
  const std::uint64_t address = heap.allocate(size, alignment, name_of(caller()));
  if (!address)
    stop("budget-memory",
         fmt::format("{} bytes were asked for, {} of {} are in use", size, heap.used(),
                     request.budget.memory),
         caller());
  return address;
}

bool Process::charge(std::uint64_t bytes) {
  charged_ += bytes;
  if (charged_ <= request.budget.memory) return true;
  stop("budget-memory", "texts and collections exceed the memory budget", caller());
  return false;
}

std::uint64_t Process::allocate_text(std::string_view text) {
  const std::uint64_t address = allocate(text.size() + 1);
  if (!address) return 0;
  memory.write(address, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  memory.store<std::uint8_t>(address + text.size(), 0);
  return address;
}

std::string Process::name_of(std::uint64_t address) {
  if (std::string image = images.name_of(address); !image.empty()) return image;
  if (address - guest::heap < request.budget.memory) {
    const auto [start, block] = heap.around(address);
    if (!block) return "heap(free)";
    return fmt::format("heap({}#{})+{:#x}", block->site, block->ordinal, address - start);
  }
  if (address - guest::objects < guest::objects_size) {
    bool meta = false;
    if (const ObjcClass* cls = objc.class_at(address, &meta))
      return fmt::format("{} {}", meta ? "metaclass" : "class", cls->name);
    if (const ObjcObject* object = objc.object(address)) return object->origin;
    const auto text = memory.cstring(address, 200);
    return text ? fmt::format("text '{}'", *text) : "runtime";
  }
  if (address - guest::stack < guest::stack_size) return "stack";
  if (const Trap* trap = trap_at(address)) return trap->name;
  return fmt::format("{:#x}", address);
}

std::string Process::comparable(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t hex = text.find("0x", at);
    if (hex == std::string_view::npos) {
      out += text.substr(at);
      break;
    }
    out += text.substr(at, hex - at);
    std::uint64_t value = 0;
    const char* begin = text.data() + hex + 2;
    const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value, 16);
    const std::string_view whole = text.substr(hex, static_cast<std::size_t>(end - begin) + 2);
    const bool address = error == std::errc{} && is_objc_pointer(value);
    out += address ? name_of(value) : std::string(whole);
    at = hex + whole.size();
  }
  return out;
}

bool Process::is_objc_pointer(std::uint64_t address) {
  return memory.region(address) != nullptr || trap_at(address) != nullptr;
}

void Process::print(std::string_view stream, std::string_view text) {
  if (!recorder.log(std::string(stream), text))
    stop("budget-log", fmt::format("more than {} bytes were printed", request.budget.log_bytes),
         caller());
}

ObjcObject* Process::new_object(std::string_view class_name, std::string origin) {
  ObjcClass& cls = objc.ensure(class_name, objc.find("NSObject"), "Foundation");
  ObjcObject* made = objc.create(cls, std::move(origin));
  if (!made) {
    stop("budget-objects", "too many Objective-C objects were made", caller());
    // Handlers go on until they return: they get an object that nobody will see.
    return &objc.adopt(cls, guest::objects + 0x40, "none");
  }
  return made;
}

std::uint64_t Process::new_string(std::string text) {
  constexpr std::size_t shown = 40;
  if (!charge(text.size())) text.clear();
  ObjcObject* made = new_object("NSString", fmt::format("'{}'", text.substr(0, shown)));
  made->text = std::move(text);
  return made->address;
}

std::optional<std::string> Process::string_of(std::uint64_t object) {
  if (const ObjcObject* found = objc.object(object)) return found->text;
  // A constant in an image: isa, flags, characters, length (CFString).
  if (!images.at(object)) return std::nullopt;
  const auto isa = memory.load<std::uint64_t>(object);
  const auto characters = memory.load<std::uint64_t>(object + 16);
  const auto length = memory.load<std::uint64_t>(object + 24);
  const ObjcClass* cls = isa ? objc.class_at(*isa) : nullptr;
  constexpr std::uint64_t longest = std::uint64_t{1} << 20;
  if (!cls || cls->name != "__NSCFConstantString" || !characters || !length || *length > longest)
    return std::nullopt;
  std::string text(*length, '\0');
  if (!memory.read(*characters, {reinterpret_cast<std::uint8_t*>(text.data()), text.size()}))
    return std::nullopt;
  return text;
}

void Process::queue(const QueuedWork& work) {
  constexpr std::size_t most = 10'000;
  if (queued.size() >= most)
    return stop("budget-queue", fmt::format("more than {} blocks wait", most), caller());
  queued.push_back(work);
}

void Process::run_queued(std::uint64_t group) {
  // What a block queues for the same group runs too; the instruction budget bounds it.
  for (std::size_t i = 0; i < queued.size() && !stopped();) {
    if (queued[i].group != group) {
      ++i;
      continue;
    }
    const QueuedWork work = queued[i];
    queued.erase(queued.begin() + static_cast<std::ptrdiff_t>(i));
    call(work.function, {work.argument});
    i = 0;
  }
}

}  // namespace metaldoctor
