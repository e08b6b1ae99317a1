#include "shim/malformed.h"

#include <algorithm>

#include "scanners/macho/image.h"
#include "shim/profile_text/profile_text.h"

namespace metaldoctor {

std::vector<std::string> malformed_profiles(std::string_view text) {
  const std::string good(text);
  std::string other_version = good, many = "mdp1;all;process;none;";
  other_version.replace(0, sizeof(shim::kProfileMark) - 1, "mdp2;");
  for (std::size_t i = 0; i <= shim::kMaxChanges; ++i) many += "1:" + std::to_string(i) + "=1;";
  std::vector<std::string> all = {
      "",
      good.substr(0, good.size() - 1),
      good.substr(0, good.size() / 2),
      good + good,
      good + "\n",
      other_version,
      many + ".",
      "mdp1;all;process;host;1:1007=1;1:1006=1;.",
      "mdp1;all;process;host;1:1006=2;.",
      "mdp1;all;process;host;1:99999999999999999999=1;.",
      "mdp1;all;process;host;60000=1;.",
      "mdp1;some;process;host;.",
      std::string(shim::kSectionSize, '1'),
  };
  std::erase_if(all, [](const std::string& each) {
    shim::Overrides read;
    return shim::parse_overrides(each.data(), each.size(), read);
  });
  return all;
}

std::vector<std::uint8_t> with_section_text(Bytes thin, std::string_view text) {
  std::vector<std::uint8_t> out(thin.begin(), thin.end());
  const auto file = MachOFile::read(thin, "library");
  if (!file || file->slices().size() != 1) return out;
  const auto image = Image::read(file->slices()[0]);
  const Section* section = image ? image->section("__TEXT", "__mdprofile") : nullptr;
  if (!section) return out;
  const auto place = std::span(out).subspan(section->file_offset, section->bytes.size());
  std::ranges::fill(place, std::uint8_t{0});
  std::ranges::copy(text.substr(0, place.size()), place.begin());
  return out;
}

}  // namespace metaldoctor
