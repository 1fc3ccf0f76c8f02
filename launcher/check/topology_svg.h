// A job's topology as a picture: hosts with their NUMA nodes, cores, GPUs and links, the ranks in
// colours, and how fast hosts reach each other.
// SPDX-License-Identifier: Apache-2.0
//
// Self-contained: it asks for nothing from elsewhere, and is in the colours of the viewer's light
// or dark mode.
#pragma once

#include <string>

#include "launcher/check/topology.h"

namespace hv::launcher {

// One <svg>, well-formed XML. name: what a reader of the screen calls it.
std::string topology_as_svg(const JobTopology& topology, const std::string& name);

}  // namespace hv::launcher
