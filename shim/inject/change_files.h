#pragma once
// What the two halves of ChangeSet share.
#include <string>
#include <string_view>

#include "shim/inject/file_system.h"

namespace metaldoctor {

inline constexpr std::size_t kLargestChangedFile = std::size_t{64} << 20;
inline constexpr std::string_view kReceiptName = "receipt.json";
/// Behind the id: the directory of a start that is not finished. No id holds a '+'.
inline constexpr std::string_view kRemains = "+new";

std::string hash_of(std::string_view bytes);
/// Where new bytes of one of the receipt's own files wait until they are renamed into place.
std::string staged(const std::string& path);
/// The same for a file of the user's: a name that none of their files has by chance.
std::string staged(const std::string& path, const std::string& id);
Result<void> remove_if_there(FileSystem& files, const std::string& path);

}  // namespace metaldoctor
