// SPDX-License-Identifier: Apache-2.0
#include "launcher/check/report/topology.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "launcher/check/report/report_text.h"
#include "src/base/text.h"
#include "tests/unit/check/made_up_topology.h"

namespace hv::launcher {
namespace {

using made_up::check_of;
using made_up::Links;

std::string text_of(const CheckInput& input) { return topology_as_text(topology_of(input)); }

std::string report_of(const CheckInput& input) { return report_as_text(input, CheckReport{}); }

TEST_CASE("two ranks on a small host are told in three lines") {
  CheckInput input =
      check_of("vm:2", {.nodes = 1, .cores = 4, .gpus = 0, .memory_bytes = 8243000000});
  CHECK(report_of(input) ==
        "2 ranks on 1 host, each runs: ./train\n"
        "vm: 4 cores, 7.7 GiB\n"
        "  ranks 0-1: cores 0-1 | 2-3\n"
        "\n"
        "The job could start: 2 ranks on 1 host, in about 0.8 s.\n");
  JobSpec spec;
  spec.placement.bind_to = BindTo::kNone;
  input = check_of("vm:2", {.nodes = 1, .cores = 4, .gpus = 0}, spec);
  CHECK(text_of(input) == "vm: 4 cores, 503 GiB\n  ranks 0-1: not bound to cores\n");
}

TEST_CASE("equal hosts are told once, with the ranks of each") {
  CheckInput input = check_of("n[1-8]:4");
  made_up::add_pairs(&input);
  CHECK(text_of(input) ==
        "n[1-8]: 2 NUMA nodes, 16 cores, 4 x NVIDIA H100 80GB HBM3, 503 GiB\n"
        "  ranks 0-31, 4 on each in turn\n"
        "  node 0: cores 0-7, GPUs 0-1, mlx5_0\n"
        "    local ranks 0-1: GPU 0 | 1, cores 0-7\n"
        "  node 1: cores 8-15, GPUs 2-3, mlx5_1\n"
        "    local ranks 2-3: GPU 2 | 3, cores 8-15\n"
        "  GPU links: NVLink x18 between all\n"
        "between hosts: reached 28 of 28 pairs; measured 6 pairs: 118 MB/s to 11.4 GB/s, slowest "
        "n2 - n3, round trip up to 18 us\n");
}

TEST_CASE("a host that is not like the others stands by itself, with its own ranks") {
  CheckInput input = check_of("n[1-3]:4");
  input.hosts[1].facts->gpus[2].model = "NVIDIA A100";
  const std::string text = text_of(input);
  CHECK(text.find("n[1,3]: ") != std::string::npos);
  CHECK(text.find("  ranks 0-3,8-11, 4 on each in turn\n") != std::string::npos);
  CHECK(text.find("n2: 2 NUMA nodes, 16 cores, 3 x NVIDIA H100 80GB HBM3, NVIDIA A100") !=
        std::string::npos);
  CHECK(text.find("    ranks 4-5: GPU 0 | 1") != std::string::npos);
}

TEST_CASE("memory that differs a little makes no other group") {
  CheckInput input = check_of("n[1-3]:4");
  input.hosts[2].facts->memory_bytes = std::uint64_t{504} << 30;
  CHECK(text_of(input).find("n[1-3]: ") == 0);
  CHECK(text_of(input).find(", 503-504 GiB\n") != std::string::npos);
}

TEST_CASE("ranks that take turns over hosts are told by host") {
  JobSpec spec;
  spec.placement.map_by = {MapBy::kNode};
  const std::string text = text_of(check_of("n[1-6]:2", {}, spec));
  CHECK(text.find("  ranks 0-11, 2 on each: n1 0,6; n2 1,7; n3 2,8; n4 3,9; ...\n") !=
        std::string::npos);
}

TEST_CASE("links of GPUs are told by sets of GPUs, the fastest first") {
  CHECK(text_of(check_of("n1:4", {.links = Links::kPairs}))
            .find("GPU links: NVLink x4 {0-1} {2-3}; else across NUMA nodes\n") !=
        std::string::npos);
  CHECK(text_of(check_of("n1:8", {.gpus = 4, .links = Links::kNone}))
            .find("GPU links: one PCIe switch {0-1} {2-3} {4-5} {6-7}; one NUMA node {0-3} "
                  "{4-7}; else across NUMA nodes\n") != std::string::npos);
}

TEST_CASE("no group takes more than a dozen lines, nor a line hundreds of columns") {
  for (const int nodes : {1, 2, 4, 8, 16}) {
    CAPTURE(nodes);
    JobSpec spec;
    spec.placement.bind_to = BindTo::kCore;
    const std::string text = text_of(check_of(
        "n[1-8]:128", {.nodes = nodes, .cores = 128, .gpus = 8 / std::min(8, nodes)}, spec));
    CHECK(std::count(text.begin(), text.end(), '\n') <= 12);
    for (const std::string& line : split(text, '\n')) CHECK(line.size() < 200);
  }
}

TEST_CASE("a core's hardware threads are told in order, whatever order a plan has them in") {
  CheckInput input = check_of("n1:1", {.nodes = 1, .cores = 4, .gpus = 0});
  for (std::uint32_t core = 0; core < 4; ++core)
    input.hosts[0].facts->cores[core].threads = {core, core + 4};
  input.plan.ranks[0].cores = {0, 4, 1, 5};
  CHECK(text_of(input) ==
        "n1: 4 cores (8 threads), 503 GiB\n"
        "  rank 0: cores 0-1,4-5\n");
  CHECK(topology_of(input).hosts[0].nodes[0].cores[1].ranks == std::vector{0});
  CHECK(topology_of(input).hosts[0].nodes[0].cores[2].ranks.empty());
}

TEST_CASE("hosts that do not answer are told together") {
  CheckInput input = check_of("n[1-4]:4");
  for (const std::size_t host : {1, 2})
    input.hosts[host].failure = Error(ErrorKind::kStart, "no route");
  CHECK(text_of(input).find("n[2-3]: do not answer\n") != std::string::npos);
  input.hosts[2].failure.reset();
  CHECK(text_of(input).find("n2: does not answer; ranks 4-7\n") != std::string::npos);
}

TEST_CASE("what hosts say of themselves cannot steer a terminal") {
  CheckInput input = check_of("n1:4");
  for (wire::Gpu& gpu : input.hosts[0].facts->gpus) gpu.model = "\x1b[2J\n";
  input.hosts[0].facts->rdma[0].name = "\x1b[31m";
  CHECK(text_of(input).find('\x1b') == std::string::npos);
}

TEST_CASE("without a program there is no line of what runs") {
  CheckInput input = check_of("n1:4");
  input.has_program = false;
  CHECK(report_of(input).find("n1: 2 NUMA nodes") == 0);
  CHECK(report_of(CheckInput{}).find("could start") != std::string::npos);
}

}  // namespace
}  // namespace hv::launcher
