#pragma once
#include "scanners/code/findings.h"
#include "scanners/code/trace.h"

namespace metaldoctor {

/// How an event of a trace appears in the findings.
struct SiteKind {
  enum class Kind {
    none,      ///< asks nothing
    site,      ///< a query site
    counted,   ///< a getter of pipeline states, which is only counted
    unproven,  ///< a selector that other classes answer too, sent to what may be no device
  } kind = Kind::none;
  std::string_view name;  ///< counted, unproven
};
SiteKind site_kind(const CallEvent& event);

/// The site of an event of kind site. `image` is its UUID, or what stands for it.
QuerySite make_site(const Program& program, const FunctionTrace& trace, const CallEvent& event,
                    const std::string& image, const std::string& arch);

}  // namespace metaldoctor
