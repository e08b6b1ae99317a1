#include <fmt/format.h>

#include "scanners/simulator/abi_tables.h"
#include "scanners/simulator/call_access.h"

namespace metaldoctor {
namespace {

constexpr std::uint64_t default_handle = ~std::uint64_t{1};  // RTLD_DEFAULT and its kin
constexpr std::uint64_t first_special = ~std::uint64_t{7};

std::uint64_t header_of(const SimLoaded& image) {
  return image.address(image.image->base());
}

/// Handles: an image's header, or 1 for a library of the system.
void do_dlopen(Call& call) {
  Process& process = call.process;
  if (call.arg(0) == 0) return call.returns(default_handle);
  const std::string path = call.text(0);
  if (const SimLoaded* image = process.images.find(path)) return call.returns(header_of(*image));
  const bool metal = leaf_name(path) == "Metal";
  if (metal && process.request.metal == SimMetal::never) return call.returns(0);
  if (metal) process.devices.load_metal();
  if (!is_system_library(path) && !metal) {
    process.assume(fmt::format("dlopen(\"{}\") fails", path));
    return call.returns(0);
  }
  if (!metal) process.assume(fmt::format("dlopen(\"{}\") succeeds", path));
  call.returns(1);
}
void do_dlsym(Call& call) {
  Process& process = call.process;
  const std::string name = "_" + call.text(1);
  const std::uint64_t handle = call.arg(0);
  const SimLoaded* only = handle >= first_special ? nullptr : process.images.at(handle);
  if (const auto found = process.images.exported(name, only)) return call.returns(*found);
  if (name.starts_with("_MTL") && !process.devices.loaded()) return call.returns(0);
  call.returns(only ? 0 : process.known_symbol(name));
}

/// struct dl_info {name, base, symbol, symbol address}
void do_dladdr(Call& call) {
  Process& process = call.process;
  const std::uint64_t address = call.arg(0), info = call.arg(1);
  std::uint64_t path = 0, base = 0, symbol = 0, value = 0;
  if (const SimLoaded* image = process.images.at(address)) {
    path = process.objc.text(image->path);
    base = header_of(*image);
    for (const auto& [name, unslid] : image->exports) {
      const std::uint64_t start = image->address(unslid);
      if (start > address || start < value) continue;
      // Two names for one address: the first in the alphabet, whatever the table's order is.
      if (start == value && symbol && process.memory.cstring(symbol) < name.substr(1)) continue;
      value = start;
      symbol = process.objc.text(std::string_view(name).substr(1));
    }
  } else if (const Trap* trap = process.trap_at(address)) {
    path = process.objc.text(library_path(trap->library));
    base = Process::header_of(address);
    symbol = process.objc.text(trap->name);
    value = address;
  } else {
    return call.returns(0);
  }
  call.store(info, path);
  call.store(info + 8, base);
  call.store(info + 16, symbol);
  call.store(info + 24, value);
  call.returns(1);
}

// The system's libraries have no headers here, so only the program's images are counted.
const SimLoaded* image_number(Call& call) {
  const auto& images = call.process.images.images();
  const auto index = static_cast<std::uint32_t>(call.arg(0));
  return index < images.size() ? &images[index] : nullptr;
}
void do_image_count(Call& call) {
  call.returns(call.process.images.images().size());
}
void do_image_header(Call& call) {
  const SimLoaded* image = image_number(call);
  call.returns(image ? header_of(*image) : 0);
}
void do_image_name(Call& call) {
  const SimLoaded* image = image_number(call);
  call.returns(image ? call.process.objc.text(image->path) : 0);
}
void do_image_slide(Call& call) {
  const SimLoaded* image = image_number(call);
  call.returns(image ? image->slide : 0);
}
void do_image_path_containing(Call& call) {
  const SimLoaded* image = call.process.images.at(call.arg(0));
  const Trap* trap = call.process.trap_at(call.arg(0));
  call.returns(image  ? call.process.objc.text(image->path)
               : trap ? call.process.objc.text(library_path(trap->library))
                      : 0);
}
/// The system's libraries lie in the shared cache, and so do our traps.
void do_cache_range(Call& call) {
  const auto [start, size] = Process::shared_cache();
  call.store(call.arg(0), size);
  call.returns(start);
}
void do_in_cache(Call& call) {
  call.returns(is_system_library(call.text(0)));
}
void do_address_in_cache(Call& call) {
  const auto [start, size] = Process::shared_cache();
  call.returns(call.arg(0) - start < size);
}
void do_executable_path(Call& call) {
  Process& process = call.process;
  constexpr std::uint32_t mh_execute = 2;
  std::string path = "/simulated/program";
  for (const SimLoaded& image : process.images.images())
    if (image.image->file_type() == mh_execute) path = image.path;
  const auto room = call.load<std::uint32_t>(call.arg(1));
  if (room < path.size() + 1) {
    call.store(call.arg(1), static_cast<std::uint32_t>(path.size() + 1));
    return call.returns(~std::uint64_t{0});
  }
  process.memory.write(call.arg(0),
                       {reinterpret_cast<const std::uint8_t*>(path.c_str()), path.size() + 1});
  call.returns(0);
}
/// Existing images are reported at once; nothing is loaded later.
void do_register_add_image(Call& call) {
  Process& process = call.process;
  const std::uint64_t function = call.arg(0);
  for (const SimLoaded& image : process.images.images())
    process.call(function, {header_of(image), image.slide});
}
/// A thread-local variable's descriptor {thunk, key, offset}: one block an image, one thread.
void do_tlv(Call& call) {
  Process& process = call.process;
  const std::uint64_t descriptor = call.arg(0);
  const SimLoaded* image = process.images.at(descriptor);
  if (!image) return call.fault("is no thread-local variable", descriptor);
  std::uint64_t& block = process.thread_values[header_of(*image)];
  if (!block) {
    constexpr std::uint32_t regular = 0x11, zero_fill = 0x12;  // S_THREAD_LOCAL_...
    std::uint64_t low = ~std::uint64_t{0}, high = 0;
    for (const Section& section : image->image->sections()) {
      if (section.type != regular && section.type != zero_fill) continue;
      low = std::min(low, section.address);
      high = std::max(high, section.address + section.size);
    }
    if (high <= low) return call.fault("has no thread-local section", descriptor);
    block = process.allocate(high - low);
    for (const Section& section : image->image->sections())
      if (section.type == regular && block)
        process.memory.move(block + section.address - low, image->address(section.address),
                            section.size);
  }
  call.returns(block + call.load<std::uint64_t>(descriptor + 16));
}

constexpr auto exact = Fidelity::exact;
constexpr auto constant = Fidelity::constant;

constexpr HostFunction functions[] = {
    {"_dlopen", exact, do_dlopen},
    {"_dlsym", exact, do_dlsym},
    {"_dlclose", constant},
    {"_dlerror", constant},
    {"_dladdr", exact, do_dladdr},
    {"__dyld_image_count", exact, do_image_count},
    {"__dyld_get_image_header", exact, do_image_header},
    {"__dyld_get_image_name", exact, do_image_name},
    {"__dyld_get_image_vmaddr_slide", exact, do_image_slide},
    {"_dyld_image_path_containing_address", exact, do_image_path_containing},
    {"__dyld_get_shared_cache_range", exact, do_cache_range},
    {"__dyld_shared_cache_contains_path", exact, do_in_cache},
    {"__dyld_is_memory_immutable", exact, do_address_in_cache},
    {"__NSGetExecutablePath", exact, do_executable_path},
    {"__dyld_register_func_for_add_image", exact, do_register_add_image},
    {"__dyld_register_func_for_remove_image", constant},
    {"__tlv_bootstrap", exact, do_tlv},
    {"__availability_version_check", constant, nullptr, 1},
    {"___isPlatformVersionAtLeast", constant, nullptr, 1},
    {"___isOSVersionAtLeast", constant, nullptr, 1},
    {"dyld_stub_binder", constant},
};

}  // namespace

std::span<const HostFunction> loader_functions() {
  return functions;
}

}  // namespace metaldoctor
