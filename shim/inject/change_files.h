#pragma once
// What the two halves of ChangeSet share.
#include <string>
#include <string_view>

#include "shim/inject/file_system.h"

namespace metaldoctor {

inline constexpr std::size_t kLargestChangedFile = std::size_t{64} << 20;
inline constexpr std::string_view kReceiptName = "receipt.json";

std::string hash_of(std::string_view bytes);
/// Where the new bytes of a file wait until they are renamed into place.
std::string staged(const std::string& path);
Result<void> remove_if_there(FileSystem& files, const std::string& path);

}  // namespace metaldoctor
