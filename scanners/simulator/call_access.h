#pragma once
// Checked access needs the whole Process; the templates live here because handlers use them.
#include "scanners/simulator/process.h"

namespace metaldoctor {

template <typename T>
T Call::load(std::uint64_t address) {
  const auto value = process.memory.load<T>(address);
  if (!value) fault("cannot be read", address);
  return value.value_or(T{});
}

template <typename T>
void Call::store(std::uint64_t address, T value) {
  if (!process.memory.store(address, value)) fault("cannot be written", address);
}

/// The bytes from an address on, one after another; running out of memory stops the run and gives
/// zeros.
class GuestBytes {
 public:
  GuestBytes(Call& call, std::uint64_t address) : call_(call), address_(address) {}
  std::uint8_t next() {
    if (at_ == held_ && !refill()) return 0;
    return buffer_[at_++];
  }
  bool ok() const { return !call_.process.stopped(); }

 private:
  bool refill() {
    const Memory& memory = call_.process.memory;
    const Region* region = memory.region(address_);
    const std::uint64_t left = region ? region->size - (address_ - region->address) : 0;
    held_ = std::min<std::uint64_t>(left, buffer_.size());
    at_ = 0;
    if (held_ == 0 || !memory.read(address_, std::span(buffer_).first(held_))) {
      held_ = 0;
      call_.fault("cannot be read", address_);
      return false;
    }
    address_ += held_;
    return true;
  }
  Call& call_;
  std::uint64_t address_;
  std::size_t at_ = 0, held_ = 0;
  std::array<std::uint8_t, 256> buffer_{};
};

}  // namespace metaldoctor
