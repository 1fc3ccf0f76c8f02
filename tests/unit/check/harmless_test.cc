// Hosts that differ in what does no harm: no finding, whatever the differences.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <random>

#include "tests/unit/check/healthy.h"

namespace hv::launcher {
namespace {

using tests::kGiB;

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  std::uint64_t between(std::uint64_t least, std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(least, most)(random_);
  }
  bool coin() { return between(0, 1) == 1; }
  template <class T>
  T one_of(const std::vector<T>& values) {
    return values[between(0, values.size() - 1)];
  }

 private:
  std::mt19937 random_;
};

// Of all hosts: some jobs have a Python, RDMA, GPUs, bound ranks, a range of ports.
struct JobKind {
  bool has_python, has_rdma, has_gpus, is_bound, has_ports;
};

wire::CheckReply reply_of(Draw& draw, const JobKind& kind, std::uint32_t cores) {
  wire::CheckReply told = tests::healthy_reply();
  for (wire::FolderFacts& folder : told.folders) {
    folder.device = draw.one_of<std::string>({"/dev/sda1", "/dev/nvme0n1p2", "tmpfs"});
    folder.kind = draw.one_of<std::string>({"ext4", "xfs", "tmpfs", "btrfs"});
    folder.inode = draw.between(1, 1 << 30);
    folder.free_bytes = draw.coin() ? draw.between(kGiB, 900 * kGiB) : wire::kNoLimit;
    folder.free_files = draw.coin() ? draw.between(50000, 1 << 30) : wire::kNoLimit;
  }
  wire::ProgramFacts& program = told.programs[0];
  program.libraries = {{"libc.so.6", draw.coin() ? "/lib64/libc.so.6" : "/usr/lib/libc.so.6"}};
  if (kind.has_python) {
    program.path = draw.one_of<std::string>({"/usr/bin/python3", "/opt/python3/bin/python3"});
    program.digest = std::to_string(draw.between(1 << 28, 1 << 30));
    program.script = "/home/ada/run/train.py";
    program.script_digest = "5555555555";
    program.python = {tests::healthy_python()};
    program.python[0].executable = program.path;
    program.python[0].version = "3.11." + std::to_string(draw.between(0, 12));
    program.python[0].packages[2].second = "2." + std::to_string(draw.between(0, 3)) + ".1";
  }
  told.limits.locked_bytes = kind.has_rdma || draw.coin() ? wire::kNoLimit : 64 << 10;
  told.limits.open_files = draw.one_of<std::uint64_t>({1024, 4096, 1048576});
  told.limits.stack_bytes = draw.coin() ? 8 << 20 : wire::kNoLimit;
  told.limits.processes = draw.one_of<std::uint64_t>({4096, 63000, wire::kNoLimit});
  told.limits.processes_of_user = draw.between(1, 900);
  const std::uint64_t memory = draw.between(8, 64) * kGiB;
  told.memory = {memory, memory / 2 + draw.between(0, memory / 4), wire::kNoLimit, memory / 2,
                 memory / 2 - draw.between(0, memory / 8)};
  if (draw.coin()) told.memory.cgroup_bytes = memory - kGiB;
  told.load = {cores, 0.01 * static_cast<double>(draw.between(0, 60)),
               draw.coin() ? "sshd (pid 7, root) 0.5 cores" : "",
               draw.one_of<std::string>({"", "schedutil", "ondemand", "performance"})};
  if (kind.has_ports)
    told.ports = {"20000-20099", 100, static_cast<std::uint32_t>(draw.between(0, 50))};
  return told;
}

CheckInput input_of(Draw& draw) {
  const JobKind kind{draw.coin(), draw.coin(), draw.coin(), draw.coin(), draw.coin()};
  const int ranks = static_cast<int>(draw.between(1, 8));
  CheckInput input = tests::healthy_input(static_cast<int>(draw.between(1, 12)), ranks);
  for (std::size_t i = 0; i < input.hosts.size(); ++i) {
    CheckedHost& host = input.hosts[i];
    const auto cores = static_cast<std::uint32_t>(draw.between(2, 96));
    host.name = draw.one_of<std::string>({"n", "gpu-", "10.0.0."}) + std::to_string(i + 1);
    host.facts->hostname = host.name;
    host.facts->machine = "x86_64";
    host.facts->usable_cores = static_cast<std::uint32_t>(draw.between(1, cores));
    host.facts->addresses = {"10.0.0." + std::to_string(i + 1), "172.17.0.1"};
    host.facts->memory_bytes = draw.between(8, 64) * kGiB;
    if (kind.has_rdma && draw.coin()) host.facts->rdma = {{"mlx5_0", 0, "", {1}}};
    host.seconds_to_agent = 0.01 * static_cast<double>(draw.between(1, 300));
    host.clock_ahead_s = 0.001 * static_cast<double>(draw.between(0, 1500));
    host.told = reply_of(draw, kind, cores);
    if (kind.has_gpus) host.inventory.emplace();
    for (const int rank : host.ranks) {
      PlannedRank& planned = input.plan.ranks[static_cast<std::size_t>(rank)];
      if (kind.has_gpus) planned.gpus = {rank % ranks};
      if (kind.is_bound) planned.cores = {static_cast<int>(draw.between(0, cores - 1))};
    }
  }
  for (std::size_t to = 1; to < input.hosts.size(); ++to) {
    const std::string address = "10.0.0." + std::to_string(to + 1);
    input.pairs.push_back({to - 1, to, {address, "172.17.0.1"}, {address}, "172.17.0.1: another"});
  }
  return input;
}

TEST_CASE("hosts that differ in what does no harm have no finding") {
  for (unsigned seed = 1; seed <= 500; ++seed) {
    Draw draw(seed);
    const CheckInput input = input_of(draw);
    const CheckReport report = judge(input);
    CAPTURE(seed);
    CHECK(report.not_probed.empty());
    for (const Finding& finding : report.findings) FAIL(finding.verdict << ": " << finding.fact);
  }
}

}  // namespace
}  // namespace hv::launcher
