#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace metaldoctor::testing {

/// Binary property lists with references of one byte, object by object: libplist's writer would
/// not make the ones that tests need.
class BinaryPlist {
 public:
  BinaryPlist& text(const std::string& value) {
    return add(static_cast<char>(0x50 | value.size()) + value);
  }
  BinaryPlist& array(const std::vector<std::uint8_t>& elements) {
    return add(head(0xa0, elements.size()) + std::string(elements.begin(), elements.end()));
  }
  BinaryPlist& dictionary(const std::vector<std::uint8_t>& keys,
                          const std::vector<std::uint8_t>& values) {
    return add(head(0xd0, keys.size()) + std::string(keys.begin(), keys.end()) +
               std::string(values.begin(), values.end()));
  }

  std::string build(std::uint8_t top) const {
    std::string out = "bplist00";
    std::vector<std::size_t> offsets;
    for (const std::string& object : objects_) {
      offsets.push_back(out.size());
      out += object;
    }
    const std::size_t table = out.size();
    for (const std::size_t offset : offsets) big_endian(out, offset, 2);
    out += std::string(6, '\0') + '\x02' + '\x01';
    big_endian(out, objects_.size(), 8);
    big_endian(out, top, 8);
    big_endian(out, table, 8);
    return out;
  }

 private:
  static std::string head(int kind, std::size_t count) {
    if (count < 15) return {static_cast<char>(kind | static_cast<int>(count))};
    return {static_cast<char>(kind | 15), '\x10', static_cast<char>(count)};
  }
  static void big_endian(std::string& out, std::uint64_t value, int bytes) {
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
      out += static_cast<char>(value >> shift & 0xff);
    }
  }
  BinaryPlist& add(std::string object) {
    objects_.push_back(std::move(object));
    return *this;
  }

  std::vector<std::string> objects_;
};

}  // namespace metaldoctor::testing
