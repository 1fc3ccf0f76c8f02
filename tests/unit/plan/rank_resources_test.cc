// Tests of GPUs, adapters and variables of ranks.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/rank_resources.h"

#include <doctest/doctest.h>

#include "launcher/allocation/host_expression.h"
#include "launcher/allocation/rankfile.h"
#include "src/base/error.h"
#include "src/base/text.h"

using namespace hv::launcher;

namespace {

// Two sockets of four cores; two GPUs and an adapter below one PCI bridge each.
HostFacts big_host() {
  HostFacts facts;
  facts.usable_cores = 8;
  for (int core = 0; core < 8; ++core) facts.cores.push_back({core / 4, {core}});
  const std::vector<std::string> paths{"pci0/b0/s0/g0", "pci0/b0/s1/g1", "pci1/b1/s2/g2",
                                       "pci1/b1/s2/g3"};
  for (const std::string& path : paths)
    facts.gpus.push_back({"GPU-" + path.substr(path.size() - 1), path[3] - '0', path,
                          "GPU-" + path.substr(path.size() - 1)});
  facts.rdma = {{"mlx5_0", 0, "pci0/b0/s0/n0", {1}},
                {"mlx5_1", 0, "pci0/b0/s1/n1", {1}},
                {"mlx5_2", 1, "pci1/b1/s2/n2", {2}}};
  return facts;
}

LaunchPlan resource_plan(const JobSpec& spec, const HostFacts& facts = big_host()) {
  return make_plan(spec, parse_host_expression("a"), {facts});
}

JobSpec resource_spec(std::optional<int> ranks = std::nullopt) {
  JobSpec spec;
  spec.programs = {{{"train"}}};
  spec.ranks = ranks;
  return spec;
}

std::string variable(const PlannedRank& rank, const std::string& name) {
  for (const auto& [known, value] : rank.variables)
    if (known == name) return value;
  return "not set";
}

}  // namespace

TEST_CASE("ranks get the next GPUs, the cores near them, and threads for their share") {
  const LaunchPlan plan = resource_plan(resource_spec());
  REQUIRE(plan.ranks.size() == 4);
  CHECK(plan.ranks[3].gpus == std::vector{3});
  CHECK(plan.ranks[3].cores == std::vector{4, 5, 6, 7});
  CHECK(plan.ranks[3].nodes == std::vector{1});
  CHECK(variable(plan.ranks[3], "OMP_NUM_THREADS") == "2");
  CHECK(variable(plan.ranks[3], "CUDA_VISIBLE_DEVICES") == "not set");
  CHECK(variable(plan.ranks[3], "NCCL_IB_HCA") == "not set");
}

TEST_CASE("a job that has some of the GPUs sees those, in the order of its ranks") {
  JobSpec spec = resource_spec();
  HostList list = parse_host_expression("a");
  list.entries[0].gpus = {"2", "GPU-0"};
  const LaunchPlan plan = make_plan(spec, list, {big_host()});
  CHECK(variable(plan.ranks[0], "CUDA_VISIBLE_DEVICES") == "GPU-2,GPU-0");
  CHECK(variable(plan.ranks[1], "CUDA_VISIBLE_DEVICES") == "GPU-2,GPU-0");
  HostFacts untold = big_host();
  for (std::size_t i = 0; i < 4; ++i) {
    untold.gpus[i].uuid.clear();
    untold.gpus[i].cuda_name = std::to_string(i);
  }
  list.entries[0].gpus = {"2", "1"};
  CHECK(variable(make_plan(spec, list, {untold}).ranks[0], "CUDA_VISIBLE_DEVICES") == "2,1");
}

TEST_CASE("with --gpu-bind=visible each rank sees its own GPUs") {
  JobSpec spec = resource_spec();
  spec.placement.sees_only_its_gpus = true;
  spec.placement.gpus_per_rank = 2;
  const LaunchPlan plan = resource_plan(spec);
  REQUIRE(plan.ranks.size() == 2);
  CHECK(variable(plan.ranks[1], "CUDA_VISIBLE_DEVICES") == "GPU-2,GPU-3");
}

TEST_CASE("with --nic-bind ranks use the adapters that are nearest to their GPU") {
  JobSpec spec = resource_spec();
  spec.placement.nic_bind = true;
  const LaunchPlan plan = resource_plan(spec);
  CHECK(variable(plan.ranks[0], "NCCL_IB_HCA") == "=mlx5_0");
  CHECK(variable(plan.ranks[1], "NCCL_IB_HCA") == "=mlx5_1");
  CHECK(variable(plan.ranks[2], "NCCL_IB_HCA") == "=mlx5_2");
  CHECK(variable(plan.ranks[2], "UCX_NET_DEVICES") == "mlx5_2:2");
  HostFacts without_tree = big_host();
  for (GpuFacts& gpu : without_tree.gpus) gpu.pci_path.clear();
  CHECK(variable(resource_plan(spec, without_tree).ranks[0], "NCCL_IB_HCA") == "=mlx5_0,mlx5_1");
  HostFacts without_gpus = big_host();
  without_gpus.gpus.clear();
  CHECK(variable(resource_plan(spec, without_gpus).ranks[0], "NCCL_IB_HCA") ==
        "=mlx5_0,mlx5_1,mlx5_2");
  HostFacts without_adapters = big_host();
  without_adapters.rdma.clear();
  CHECK(variable(resource_plan(spec, without_adapters).ranks[0], "NCCL_IB_HCA") == "not set");
}

TEST_CASE("--nic-bind goes by the adapters as the agent tells of them") {
  hv::wire::Facts told;
  told.gpus = {{"a", "H100", "GPU-a", 0, 0, "pci0/b0/s0/g0"},
               {"b", "H100", "GPU-b", 1, 1, "pci1/b1/s1/g1"}};
  told.rdma = {{"mlx5_0", 0, "pci0/b0/s0/n0", {1}}, {"mlx5_7", 1, "pci1/b1/s1/n1", {1, 2}}};
  JobSpec spec = resource_spec(2);
  spec.placement.nic_bind = true;
  const LaunchPlan plan = resource_plan(spec, host_facts(told));
  CHECK(variable(plan.ranks[0], "NCCL_IB_HCA") == "=mlx5_0");
  CHECK(variable(plan.ranks[0], "UCX_NET_DEVICES") == "mlx5_0:1");
  CHECK(variable(plan.ranks[1], "NCCL_IB_HCA") == "=mlx5_7");
  CHECK(variable(plan.ranks[1], "UCX_NET_DEVICES") == "mlx5_7:1,mlx5_7:2");
  // Without a place in the PCI tree the NUMA node tells; of adapters without either none is named.
  for (hv::wire::RdmaAdapter& adapter : told.rdma) adapter.pci_path.clear();
  CHECK(variable(resource_plan(spec, host_facts(told)).ranks[1], "NCCL_IB_HCA") == "=mlx5_7");
  for (hv::wire::RdmaAdapter& adapter : told.rdma) adapter.node = hv::wire::kNoNode;
  CHECK(variable(resource_plan(spec, host_facts(told)).ranks[1], "NCCL_IB_HCA") == "not set");
}

TEST_CASE("with --map-by numa GPUs of the nodes take turns, too") {
  JobSpec spec = resource_spec(2);
  spec.placement.map_by = {MapBy::kNuma};
  HostList list = parse_host_expression("a:2");
  const LaunchPlan plan = make_plan(spec, list, {big_host()});
  CHECK(plan.ranks[0].gpus == std::vector{0});
  CHECK(plan.ranks[1].gpus == std::vector{2});
  CHECK(plan.ranks[1].nodes == std::vector{1});
  CHECK(variable(plan.ranks[0], "CUDA_VISIBLE_DEVICES") == "GPU-0,GPU-2");
  CHECK(variable(resource_plan(resource_spec(2)).ranks[0], "CUDA_VISIBLE_DEVICES") == "not set");
}

TEST_CASE("a rankfile's cores are the rank's, and cores that it may not use are an error") {
  const auto plan_with = [](const std::string& line) {
    return make_plan(resource_spec(), add_rankfile({{}, true}, line, "ranks"), {big_host()});
  };
  const LaunchPlan plan = plan_with("rank 0=a slot=1,5-6");
  CHECK(plan.ranks[0].cores == std::vector{1, 5, 6});
  CHECK(variable(plan.ranks[0], "OMP_NUM_THREADS") == "3");
  CHECK(plan.ranks[0].nodes == std::vector{0, 1});
  CHECK(make_plan(resource_spec(), add_rankfile({{}, true}, "rank 0=a slot=1", "f"), {std::nullopt})
            .ranks[0]
            .cores == std::vector{1});
  CHECK_THROWS_AS(plan_with("rank 0=a slot=8"), hv::Error);
}

TEST_CASE("--report-bindings says what each rank has") {
  CHECK(bindings_as_text(resource_plan(resource_spec(2))) ==
        "rank 0 on host a: cores 0-3, NUMA node 0, GPU 0 (GPU-0)\n"
        "rank 1 on host a: cores 0-3, NUMA node 0, GPU 1 (GPU-1)\n");
  HostFacts untold = big_host();
  for (GpuFacts& gpu : untold.gpus) gpu.uuid.clear();
  CHECK(bindings_as_text(resource_plan(resource_spec(1), untold)) ==
        "rank 0 on host a: cores 0-3, NUMA node 0, GPU 0\n");
  JobSpec unbound = resource_spec(1);
  unbound.placement.bind_to = BindTo::kNone;
  HostFacts plain;
  plain.usable_cores = 2;
  CHECK(bindings_as_text(resource_plan(unbound, plain)) == "rank 0 on host a: all cores\n");
}

TEST_CASE("ranks that a rankfile gives no GPU have those that are left") {
  const HostList list = add_rankfile({{}, true}, "rank 0=a gpus=1\nrank 1=a\nrank 2=a\n", "ranks");
  const LaunchPlan plan = make_plan(resource_spec(), list, {big_host()});
  CHECK(plan.ranks[1].gpus == std::vector{0});
  CHECK(plan.ranks[2].gpus == std::vector{2});
  CHECK(variable(plan.ranks[0], "CUDA_VISIBLE_DEVICES") == "GPU-1,GPU-0,GPU-2");
}

TEST_CASE("more GPUs a rank than a host has are an error") {
  JobSpec spec = resource_spec();
  spec.placement.gpus_per_rank = 2;
  CHECK_THROWS_AS(make_plan(spec, parse_host_expression("a:4"), {big_host()}), hv::Error);
  spec.placement.gpus_per_rank = 8;
  CHECK_THROWS_AS(resource_plan(spec), hv::Error);
}

TEST_CASE("a GPU by its index and by its UUID is one GPU") {
  HostList list = parse_host_expression("a");
  list.entries[0].gpus = {"0", "GPU-0"};
  CHECK_THROWS_AS(make_plan(resource_spec(), list, {big_host()}), hv::Error);
}

TEST_CASE("where all GPUs of a host are excluded it has no slots") {
  HostList list = parse_host_expression("a,b");
  list.entries[0].without_gpus = {0, 1, 2, 3};
  const LaunchPlan plan = make_plan(resource_spec(), list, {big_host(), big_host()});
  REQUIRE(plan.hosts.size() == 1);
  CHECK(plan.hosts[0].name == "b");
}

TEST_CASE("a GPU of a host with one NUMA node is near its cores, whatever the system tells") {
  HostFacts facts = big_host();
  for (CoreFacts& core : facts.cores) core.node = 0;
  for (GpuFacts& gpu : facts.gpus) gpu.node.reset();
  JobSpec spec = resource_spec();
  spec.placement.bind_to = BindTo::kGpu;
  CHECK(resource_plan(spec, facts).ranks[0].nodes == std::vector{0});
}

TEST_CASE("an inherited CUDA_VISIBLE_DEVICES says which GPUs there are") {
  hv::wire::Facts told;
  told.gpus = {{"a", "H100", "GPU-aa", 0}, {"b", "H100", "GPU-bb", 1}, {"c", "H100", "", 2}};
  const auto names = [&](const std::string& visible) {
    told.has_visible_devices = true;
    told.visible_devices = visible;
    std::vector<std::string> words;
    for (const GpuFacts& gpu : host_facts(told).gpus) words.push_back(gpu.cuda_name);
    return hv::join(words, " ");
  };
  CHECK(names("2,0") == "2 GPU-aa");
  CHECK(names("GPU-b") == "GPU-b");
  CHECK(names("MIG-1/2, 1") == "MIG-1/2 GPU-bb");
  CHECK(names("0,7,1") == "GPU-aa");
  CHECK(names("") == "");
  CHECK(names("-1") == "");
  told.has_visible_devices = false;
  CHECK(host_facts(told).gpus.size() == 3);
  CHECK(host_facts(told).gpus[2].cuda_name == "2");
}

TEST_CASE("a host's ifname= is told to its ranks") {
  HostList list = parse_host_expression("a");
  list.entries[0].interfaces = "eth1";
  const LaunchPlan plan = make_plan(resource_spec(), list, {std::nullopt});
  CHECK(variable(plan.ranks[0], "HVRUN_INTERFACES") == "eth1");
  CHECK(variable(plan.ranks[0], "NCCL_SOCKET_IFNAME") == "=eth1");
  CHECK(variable(plan.ranks[0], "GLOO_SOCKET_IFNAME") == "eth1");
}
