// SPDX-License-Identifier: Apache-2.0
#include "launcher/check/report/topology.h"

#include <doctest/doctest.h>

#include "tests/unit/check/made_up_topology.h"

namespace hv::launcher {
namespace {

using made_up::check_of;
using made_up::Links;

TopologyHost host_of(const CheckInput& input) { return topology_of(input).hosts.at(0); }

const GpuLink& link_of(const TopologyHost& host, std::size_t from, std::size_t to) {
  for (const GpuLink& link : host.links)
    if (link.from == from && link.to == to) return link;
  FAIL("no such link");
  return host.links.front();
}

TEST_CASE("a topology has each host's nodes with what is near them") {
  const TopologyHost host = host_of(check_of("n1:4"));
  REQUIRE(host.nodes.size() == 2);
  CHECK(host.nodes[1].number == 1);
  CHECK(host.nodes[1].cores.size() == 8);
  CHECK(host.nodes[1].gpus == std::vector<std::size_t>{2, 3});
  CHECK(host.nodes[1].adapters == std::vector<std::string>{"mlx5_1"});
  CHECK(host.nodes[1].ranks == std::vector{2, 3});
  CHECK(host.nodes[1].package == 1);
  CHECK(host.gpus[2].number == 2);
  CHECK(host.gpus[2].model == "NVIDIA H100 80GB HBM3");
  CHECK(host.gpus[2].memory_bytes == std::uint64_t{80} << 30);
  CHECK(host.caches == std::vector<std::string>{"2 x L3 (32MB)"});
}

TEST_CASE("a topology has ranks where the plan puts them") {
  JobSpec spec;
  spec.placement.bind_to = BindTo::kCore;
  const JobTopology topology = topology_of(check_of("n1:4,n2:4", {}, spec));
  REQUIRE(topology.hosts.size() == 2);
  const TopologyHost& host = topology.hosts[1];
  REQUIRE(host.ranks.size() == 4);
  CHECK(host.ranks[3].rank == 7);
  CHECK(host.ranks[3].local_rank == 3);
  CHECK(host.ranks[3].gpus == std::vector{3});
  CHECK(host.gpus[3].ranks == std::vector{7});
  CHECK(host.ranks[2].cores == std::vector{8});
  CHECK(host.nodes[1].cores[0].ranks == std::vector{6});
  CHECK(host.nodes[1].cores[5].ranks.empty());
  CHECK(host.ranks_of_no_node.empty());
}

TEST_CASE("ranks that nothing binds belong to no node") {
  JobSpec spec;
  spec.placement.bind_to = BindTo::kNone;
  const TopologyHost host = host_of(check_of("n1:2", {.gpus = 0}, spec));
  CHECK(host.ranks_of_no_node == std::vector{0, 1});
  CHECK(host.nodes[0].ranks.empty());
}

TEST_CASE("GPUs are linked by NVLink, one PCIe switch, one node, or across nodes") {
  SUBCASE("NVLinks to switches join all") {
    const TopologyHost host = host_of(check_of("n1:4"));
    REQUIRE(host.links.size() == 6);
    for (const GpuLink& link : host.links) {
      CHECK(link.path == GpuPath::kNvlink);
      CHECK(link.nvlinks == made_up::kNvlinks);
    }
    CHECK(host.gpus[0].switch_links == made_up::kNvlinks);
  }
  SUBCASE("direct NVLinks join two") {
    const TopologyHost host = host_of(check_of("n1:4", {.links = Links::kPairs}));
    CHECK(link_of(host, 0, 1).nvlinks == made_up::kPairLinks);
    CHECK(link_of(host, 0, 2).path == GpuPath::kAcrossNodes);
    CHECK(host.gpus[0].switch_links == 0);
  }
  SUBCASE("without NVLink the PCI tree tells") {
    const TopologyHost host = host_of(check_of("n1:8", {.gpus = 4, .links = Links::kNone}));
    CHECK(link_of(host, 0, 1).path == GpuPath::kPcieSwitch);
    CHECK(link_of(host, 1, 2).path == GpuPath::kNode);
    CHECK(link_of(host, 3, 4).path == GpuPath::kAcrossNodes);
  }
  SUBCASE("a GPU on the root bus itself is below no switch") {
    CheckInput input = check_of("n1:4", {.links = Links::kNone});
    for (wire::Gpu& gpu : input.hosts[0].facts->gpus)
      gpu.pci_path = "pci0000:00/" + gpu.pci_address;
    CHECK(link_of(host_of(input), 0, 1).path == GpuPath::kNode);
  }
  SUBCASE("what the system does not tell is not known") {
    CheckInput input = check_of("n1:4", {.links = Links::kNone});
    for (wire::Gpu& gpu : input.hosts[0].facts->gpus) {
      gpu.node = wire::kNoNode;
      gpu.pci_path.clear();
    }
    const TopologyHost host = host_of(input);
    CHECK(link_of(host, 0, 1).path == GpuPath::kUnknown);
    CHECK_FALSE(host.nodes.back().number.has_value());
    CHECK(host.nodes.back().gpus.size() == 4);
  }
}

TEST_CASE("a host with one node has its GPUs there, whatever they tell") {
  CheckInput input = check_of("n1:2", {.nodes = 1, .links = Links::kNone});
  for (wire::Gpu& gpu : input.hosts[0].facts->gpus) gpu.node = wire::kNoNode;
  const TopologyHost host = host_of(input);
  REQUIRE(host.nodes.size() == 1);
  CHECK(host.nodes[0].gpus.size() == 2);
}

TEST_CASE("a GPU that is cut into MIG devices is one GPU without NVLinks") {
  CheckInput input = check_of("n1:4");
  wire::InventoryGpu& cut = input.hosts[0].inventory->inventory.gpus[1];
  cut.has_mig_mode = true;
  cut.mig = {{"MIG-1", "1g", 1, 0}, {"MIG-2", "1g", 2, 0}};
  const TopologyHost host = host_of(input);
  REQUIRE(host.gpus.size() == 4);
  CHECK(host.gpus[1].parts == 2);
  CHECK(host.gpus[1].switch_links == 0);
  CHECK(link_of(host, 0, 1).path == GpuPath::kPcieSwitch);
  CHECK(link_of(host, 0, 2).path == GpuPath::kNvlink);
}

TEST_CASE("a host that does not answer has its name and its ranks") {
  CheckInput input = check_of("n1:4,n2:4");
  input.hosts[1].failure = Error(ErrorKind::kStart, "n2: no route");
  const TopologyHost host = topology_of(input).hosts[1];
  CHECK(host.name == "n2");
  CHECK_FALSE(host.is_reached);
  CHECK(host.nodes.empty());
  CHECK(host.ranks_of_no_node == std::vector{4, 5, 6, 7});
}

TEST_CASE("a path between hosts is as good as the worse of its directions") {
  CheckInput input = check_of("n[1-3]:4");
  made_up::add_pairs(&input);
  input.pairs.push_back({1, 0, {"10.0.0.1"}, {"10.0.0.1"}, "", "10.0.0.9"});
  input.pairs.back().measure.emplace();
  input.pairs.back().measure->round_trip_us = 50;
  input.pairs.back().measure->megabytes_per_s = 90;
  input.pairs.push_back({2, 1, {"10.0.0.1"}, {}, "10.0.0.1: Connection refused"});
  input.pairs.push_back({2, 99, {}, {}});  // of no host
  const std::vector<HostPath> paths = topology_of(input).paths;
  REQUIRE(paths.size() == 3);
  CHECK((paths[0].from == 0 && paths[0].to == 1));
  CHECK(paths[0].is_reached);
  CHECK(paths[0].megabytes_per_s == 90.0);
  CHECK(paths[0].round_trip_us == 50.0);
  CHECK(paths[0].address == "10.0.0.9");
  CHECK(paths[0].receiver == 0);
  CHECK_FALSE(paths[2].is_reached);
}

}  // namespace
}  // namespace hv::launcher
