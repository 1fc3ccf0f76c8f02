// What a job's hosts look like and which rank would run where: a value, from which text and
// pictures are made. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/check/check_input.h"

namespace hv::launcher {

// How two GPUs of a host reach each other; the fastest first.
enum class GpuPath {
  kNvlink,
  kPcieSwitch,   // below one root port: the processor is not on the way
  kNode,         // by the processor of their NUMA node
  kAcrossNodes,  // by two processors
  kUnknown,
};
const char* path_in_words(GpuPath path);  // "across NUMA nodes"

struct GpuLink {
  std::size_t from = 0, to = 0;  // from < to: indices into TopologyHost::gpus
  GpuPath path = GpuPath::kUnknown;
  int nvlinks = 0;  // between the two; by way of NVSwitches the fewer of both
};

struct TopologyGpu {
  int number = 0;  // as ranks are told it
  std::string model{};
  std::string pci_address{};
  std::uint64_t memory_bytes = 0;  // 0: not told
  std::optional<int> node{};
  int parts = 0;         // MIG devices
  int switch_links = 0;  // NVLinks to NVSwitches
  std::string fault{};   // why it can do no work
  std::vector<int> ranks{};
};

struct TopologyCore {
  std::vector<int> threads{};
  std::vector<int> ranks{};  // that are bound to it
};

// A NUMA node with what is near it.
struct TopologyNode {
  std::optional<int> number{};  // none: what the system tells no node of
  int package = 0;
  std::vector<TopologyCore> cores{};
  std::vector<std::size_t> gpus{};  // indices into TopologyHost::gpus
  std::vector<std::string> adapters{};
  std::vector<int> ranks{};  // those whose first core, or else GPU, is here
};

struct TopologyRank {
  int rank = 0;
  int local_rank = 0;
  std::vector<int> gpus{};   // their numbers
  std::vector<int> cores{};  // hardware threads; empty: not bound
};

struct TopologyHost {
  std::string name{};
  bool is_reached = false;
  std::uint64_t memory_bytes = 0;
  std::uint32_t packages = 0;           // 0: not known
  std::vector<std::string> caches{};    // "2 x L3 (32MB)"
  std::vector<TopologyNode> nodes{};    // by number, the one without last
  std::vector<TopologyGpu> gpus{};      // by number
  std::vector<GpuLink> links{};         // of each two
  std::vector<TopologyRank> ranks{};    // by local rank
  std::vector<int> ranks_of_no_node{};  // neither bound nor with a GPU
};

struct HostPath {
  std::size_t from = 0, to = 0;  // from < to: indices into JobTopology::hosts
  bool is_reached = false;       // each by the other, as far as they have tried
  std::string address{};         // the receiver's, to which the measured connection led
  std::size_t receiver = 0;      // from or to; where address is not empty
  std::optional<double> megabytes_per_s{};
  std::optional<double> round_trip_us{};
};

struct JobTopology {
  std::vector<TopologyHost> hosts;
  std::vector<HostPath> paths;  // between those that have tried, by from and to
};

JobTopology topology_of(const CheckInput& input);

// A job's topology for a terminal: equal hosts together, a dozen lines for each such group.
//
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
