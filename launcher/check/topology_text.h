// A job's topology for a terminal: equal hosts together, a dozen lines for each such group.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "launcher/check/topology.h"

namespace hv::launcher {

// n[1-8]: 2 NUMA nodes, 48 cores, 4 x NVIDIA H100 80GB HBM3, 1007 GiB
//   ranks 0-31, 4 on each in turn
//   node 0: cores 0-23, GPUs 0-1, mlx5_[0-1]
//     local ranks 0-1: GPU 0 | 1, cores 0-11 | 12-23
// ...
// "0 | 1": of each rank its own. Empty for no hosts.
std::string topology_as_text(const JobTopology& topology);

// "11.8 GB/s", "118 MB/s"
std::string bandwidth_in_words(double megabytes_per_s);
// "2 NUMA nodes, 48 cores (96 threads), 4 x NVIDIA H100 80GB HBM3"
std::string host_in_words(const TopologyHost& host);
// "GPU 0 | 1, cores 0-11 | 12-23"
std::string bindings_in_words(const std::vector<const TopologyRank*>& ranks);

}  // namespace hv::launcher
