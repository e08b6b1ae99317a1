#pragma once
// The checks of verify_static on one architecture.
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scanners/macho/image.h"

namespace metaldoctor {

struct ImageCheck {
  std::string_view id;
  std::vector<std::string> (*problems)(const Image&);
  std::string (*summary)(const Image&);  ///< what is printed when there is no problem
};
std::span<const ImageCheck> image_check_list();

/// The text of our reserved section; none if the image has no such section.
std::optional<std::string> section_text(const Image& image);

}  // namespace metaldoctor
