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

}  // namespace metaldoctor
