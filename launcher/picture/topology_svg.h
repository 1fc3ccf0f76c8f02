// A job's topology as a picture: hosts with their NUMA nodes, cores, GPUs and links, the ranks in
// colours, and how fast hosts reach each other.
// SPDX-License-Identifier: Apache-2.0
//
// Self-contained: it asks for nothing from elsewhere.
#pragma once

#include <string>

#include "launcher/check/report/topology.h"

namespace hv::launcher {

enum class PictureColours {
  kViewers,  // of light or dark mode, for a page in a browser
  kPlain,    // of light mode, by nothing that programs for drawing do not know
};

// One <svg>, well-formed XML. name: what a reader of the screen calls it. made: the last line, such
// as hvrun's version and the date; empty: none.
std::string topology_as_svg(const JobTopology& topology, const std::string& name,
                            PictureColours colours, const std::string& made = {});

// The colour of a path of that bandwidth, as the legend names it: "green".
const char* colour_name_of(double megabytes_per_s);

}  // namespace hv::launcher
