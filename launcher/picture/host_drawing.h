// Draws one host of a topology: a box with a box for each NUMA node, and below these its GPUs'
// links.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "launcher/check/report/topology.h"
#include "launcher/picture/picture.h"

namespace hv::launcher {

// Sizes in pixels; hosts that are many are drawn smaller, and tell the rest where the mouse rests.
struct Scale {
  bool is_dense = false;
  int cell = 9, pitch = 11;  // of a core, and from one to the next
  int columns = 16;          // of cores, where GPUs do not make a node wider
  int gpu_width = 96, gpu_height = 46;
  int name_size = 13, text_size = 11;
};
Scale scale_for(std::size_t hosts);

// Width and height.
Box size_of(const TopologyHost& host, const Scale& scale);
// place: of size_of(), or larger.
void draw_host(const TopologyHost& host, const Scale& scale, const Box& place, Picture* picture);

// Of a rank, by its number on its host.
std::string colour_of(int local_rank);
// Of a link: the fastest first.
enum class Speed { kNvlink, k10GB, k2500MB, k1GB, k50MB, kSlow };
std::string colour_of(Speed speed);

}  // namespace hv::launcher
