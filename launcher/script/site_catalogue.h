// Where site files are found: at a path, in the user's and the machine's folders, in hvrun itself.
// SPDX-License-Identifier: Apache-2.0
//
// The only part of this folder that reads files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/environment.h"

namespace hv::launcher {

// A file of hostfiles/sites, as it was when hvrun was built. The list is generated.
struct ShippedSite {
  std::string_view name;
  std::string_view text;
};
const std::vector<ShippedSite>& shipped_sites();

struct SiteFile {
  std::string name;
  std::string source;  // its path, or "shipped with hvrun"
  std::string text;
};

// name: a path (with a '/', or ending in .json), or the name of a site: NAME.json in the current
// folder, $XDG_CONFIG_HOME/hvrun/sites, /etc/hvrun/sites, or shipped. Throws Error(kUsage), with
// the nearest name that there is.
SiteFile find_site(const std::string& name, const Environment& environment);

// A table of all sites that a name finds, where from, and what they are; what is malformed is
// marked.
std::string list_of_sites(const Environment& environment);

}  // namespace hv::launcher
