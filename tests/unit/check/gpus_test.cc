// Each verdict on GPUs: told of the host that has the fault, with what mends it, and of no other.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <functional>

#include "tests/unit/check/made_up_gpus.h"

namespace hv::launcher {
namespace {

using GpuVerdicts = std::vector<std::string>;

// The one finding of three hosts of which n2 was spoilt.
Finding spoilt(const std::function<void(CheckInput&)>& spoil) {
  CheckInput input = gpu_hosts(3);
  spoil(input);
  const CheckReport report = judge(input);
  REQUIRE(report.findings.size() == 1);
  CHECK(report.not_probed.empty());
  return report.findings[0];
}

struct Case {
  const char* verdict;
  const char* fact;
  const char* fix;  // a part of it
  std::function<void(CheckInput&)> spoil;
};

void check_cases(const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    CAPTURE(one.verdict);
    CAPTURE(one.fact);
    const Finding finding = spoilt(one.spoil);
    CHECK(finding.verdict == one.verdict);
    CHECK(finding.hosts == std::vector<std::string>{"n2"});
    CHECK(finding.fact == one.fact);
    CHECK(finding.fix.find(one.fix) != std::string::npos);
    CHECK(finding.fix.find('$') == std::string::npos);
  }
}

wire::InventoryGpu& bad(CheckInput& input) { return gpu_of(input, 1, 0); }

void take_gpu_away(CheckInput& input) {
  input.hosts[1].facts->gpus.pop_back();
  told_by(input, 1).gpus.pop_back();
  gpu_of(input, 1, 0).peers.clear();
  give_gpus(&input);
}

TEST_CASE("healthy GPUs give no finding, few hosts or many") {
  for (const std::size_t count : {1, 2, 9}) {
    const CheckInput input = gpu_hosts(count);
    CHECK(verdicts_of(input) == GpuVerdicts{});
    CHECK(judge(input).not_probed.empty());
  }
}

TEST_CASE("hosts may differ in what does no harm") {
  CheckInput input = gpu_hosts(3);
  add_gpu(&input, 0);  // which nobody uses
  gpu_of(input, 0, 2).health.is_lost = true;
  gpu_of(input, 0, 2).name = "NVIDIA A30";
  gpu_of(input, 0, 2).links.clear();
  gpu_of(input, 0, 2).use.used_bytes = 70ull << 30;
  told_by(input, 1).driver = "580.95.05";                // of the same branch
  told_by(input, 1).start_s = 5;                         // with persistence mode on
  gpu_of(input, 1, 0).pcie.generation = 4;               // one is awake
  gpu_of(input, 1, 0).use.used_bytes = 500ull << 20;     // a display
  gpu_of(input, 1, 0).use.processes = {{7, 0, "Xorg"}};  //
  gpu_of(input, 1, 1).memory_bytes = 79ull << 30;        // with ECC, say
  gpu_of(input, 1, 1).has_ecc = false;                   //
  gpu_of(input, 1, 1).health.aggregate_errors = 5;       // long ago
  gpu_of(input, 2, 0).health.is_pending = true;          // corrected errors only
  gpu_of(input, 2, 0).xids = {{31, 10, "a program's own"}, {79, 100000, "long ago"}};
  gpu_of(input, 2, 0).compute_mode = "exclusive";  // with MPS
  gpu_of(input, 2, 0).use.processes = {{9, 0, "nvidia-cuda-mps-server"}};
  gpu_of(input, 2, 1).has_persistence = false;     // it starts fast
  gpu_of(input, 2, 1).use.busy_percent = 99;       // which is its own waking
  gpu_of(input, 2, 1).compute_mode = "exclusive";  // with nobody there
  input.spec.ranks = 6;
  CHECK(verdicts_of(input) == GpuVerdicts{});
}

TEST_CASE("a job whose ranks have no GPU hears nothing of GPUs") {
  CheckInput input = gpu_hosts(2);
  for (PlannedRank& rank : input.plan.ranks) rank.gpus.clear();
  told_by(input, 0).driver = "535.104.05";
  told_by(input, 0).xid_problem = "/dev/kmsg: Permission denied";
  gpu_of(input, 1, 0).health.is_lost = true;
  gpu_of(input, 1, 1).compute_mode = "prohibited";
  input.hosts[1].inventory->problem = "it hangs";
  CHECK(verdicts_of(input) == GpuVerdicts{});
  CHECK(judge(input).not_probed.empty());
}

TEST_CASE("GPUs that are missing, or of another model, are told") {
  check_cases({{"gpu-missing", "n[1,3]: 2 GPUs for 2 ranks, n2: 1 GPU for 2 ranks", "leave n2 out",
                take_gpu_away},
               {"gpu-models-differ",
                "n[1,3]: NVIDIA A100-SXM4-80GB, n2: NVIDIA A100-SXM4-80GB and NVIDIA A30",
                "n2 gpus=", [](CheckInput& input) { bad(input).name = "NVIDIA A30"; }},
               {"gpu-models-differ",
                "n[1,3]: NVIDIA A100-SXM4-80GB with 80 GiB, n2: NVIDIA A100-SXM4-80GB with 40 GiB",
                "leave n2 out", [](CheckInput& input) {
                  for (wire::InventoryGpu& gpu : told_by(input, 1).gpus)
                    gpu.memory_bytes = 40ull << 30;
                }}});
}

TEST_CASE("a check without a program tells of hosts with fewer GPUs, not of fewer than cores") {
  CheckInput input = gpu_hosts(2);
  for (PlannedRank& rank : input.plan.ranks)
    if (rank.gpus == std::vector<int>{1}) rank.gpus.clear();
  CHECK(verdicts_of(input) == GpuVerdicts{"gpu-missing: n1 n2"});
  input.has_program = false;
  CHECK(verdicts_of(input) == GpuVerdicts{});
  input.plan.ranks[1].gpus = {1};
  CHECK(verdicts_of(input) == GpuVerdicts{"gpu-missing: n2"});
}

TEST_CASE("drivers of another branch, too old, or asleep are told") {
  check_cases({{"gpu-drivers-differ",
                "n[1,3]: driver 580.82.07 (CUDA 13.0), n2: driver 535.104.05 (CUDA 12.2)",
                "driver 580.82.07 installed on n2",
                [](CheckInput& input) {
                  told_by(input, 1).driver = "535.104.05";
                  told_by(input, 1).cuda = "12.2";
                }},
               {"gpu-asleep", "n2: the driver took 9 s to start", "ssh n2 sudo nvidia-smi -pm 1",
                [](CheckInput& input) {
                  told_by(input, 1).start_s = 9;
                  bad(input).has_persistence = false;
                }}});
}

void add_packages(CheckInput* input, std::size_t host,
                  std::vector<std::pair<std::string, std::string>> packages) {
  wire::PythonFacts python;
  python.packages = std::move(packages);
  input->hosts[host].told->programs.resize(1);
  input->hosts[host].told->programs[0].python = {python};
}

TEST_CASE("a PyTorch for a newer CUDA than the driver's cannot start") {
  using Packages = std::vector<std::pair<std::string, std::string>>;
  const std::pair<Packages, bool> cases[] = {
      {{{"torch", "2.13.0+cu130"}}, true},
      {{{"torch", "2.13.0"}, {"nvidia-cuda-runtime", "13.0.48"}}, true},
      {{{"torch", "2.8.0+cu128"}}, false},  // any driver for CUDA 12 will do
      {{{"torch", "2.8.0"}, {"nvidia-cuda-runtime-cu12", "12.8.90"}}, false},
      {{{"torch", "2.13.0+cpu"}}, false},
      {{{"torch", "2.13.0"}}, false},
      {{{"numpy", "1.0+cu130"}}, false}};
  for (const auto& [packages, is_too_new] : cases) {
    CAPTURE(packages[0].second);
    CheckInput input = gpu_hosts(2);
    for (const std::size_t host : {0, 1}) {
      told_by(input, host).cuda = "12.2";
      add_packages(&input, host, packages);
    }
    CHECK(verdicts_of(input) ==
          (is_too_new ? GpuVerdicts{"gpu-driver-too-old: n1 n2"} : GpuVerdicts{}));
    CHECK(judge(input).can_start() == !is_too_new);
  }
}

TEST_CASE("GPUs that a rank would have had do not go unmentioned when they fail") {
  const auto fail = [](auto wire::GpuHealth::*what) {
    return [what](CheckInput& input) {
      add_gpu(&input, 1);
      bad(input).health.*what = true;
      for (PlannedRank& rank : input.plan.ranks)
        if (rank.host == 1) rank.gpus = {rank.gpus[0] + 1};  // the next healthy ones
    };
  };
  check_cases(
      {{"gpu-lost", "n2: GPU 0 (0000:20:00.0) has fallen off the bus", "restart n2",
        fail(&wire::GpuHealth::is_lost)},
       {"gpu-needs-reset", "n2: GPU 0 (0000:20:00.0) is refused by the driver until it is reset",
        "--gpu-reset -i 0000:20:00.0", fail(&wire::GpuHealth::needs_reset)},
       {"gpu-beyond-repair",
        "n2: GPU 0 (0000:20:00.0) has a faulty row of memory and none to take its place",
        "n2's line", fail(&wire::GpuHealth::remap_failed)},
       {"gpu-repair-pending",
        "n2: GPU 0 (0000:20:00.0) has had 3 uncorrected memory errors, whose repair waits "
        "for a reset",
        "--gpu-reset -i 0000:20:00.0", [&fail](CheckInput& input) {
          fail (&wire::GpuHealth::is_pending)(input);
          bad(input).health.volatile_errors = 3;
        }}});
}

TEST_CASE("a failed GPU is told where a rank is without one, or where there is no plan") {
  CheckInput input = gpu_hosts(2);
  add_gpu(&input, 1);
  gpu_of(input, 1, 2).health.is_lost = true;
  CHECK(verdicts_of(input) == GpuVerdicts{"gpu-lost: n2"});  // without -np it would be a slot
  input.spec.ranks = 4;
  CHECK(verdicts_of(input) == GpuVerdicts{});
  input.plan.ranks.push_back(input.plan.ranks.back());
  input.plan.ranks.back().gpus.clear();
  CHECK(verdicts_of(input) == GpuVerdicts{"gpu-missing: n2", "gpu-lost: n2"});
  input.plan.ranks.pop_back();
  input.plan_problem = Error(ErrorKind::kUsage, "too few GPUs");
  forget_plan(&input);
  CHECK(verdicts_of(input) == GpuVerdicts{"ranks-do-not-fit:", "gpu-lost: n2"});
}

TEST_CASE("a failed GPU that a launch has given to a rank unasked is told") {
  CheckInput input = gpu_hosts(2);
  gpu_of(input, 1, 0).health.is_lost = true;
  CHECK(verdicts_of(input) == GpuVerdicts{"gpu-lost: n2"});
  input.hosts[1].has_named_gpus = true;
  CHECK(verdicts_of(input) == GpuVerdicts{"gpu-lost: n2"});
}

TEST_CASE("a failed GPU that the hostfile leaves out is no finding") {
  CheckInput input = gpu_hosts(2);
  add_gpu(&input, 1);
  gpu_of(input, 1, 0).health.is_lost = true;
  for (PlannedRank& rank : input.plan.ranks)
    if (rank.host == 1) rank.gpus = {rank.gpus[0] + 1};
  CHECK(verdicts_of(input) == GpuVerdicts{"gpu-lost: n2"});
  input.hosts[1].has_named_gpus = true;
  CHECK(verdicts_of(input) == GpuVerdicts{});
}

TEST_CASE("errors and slowness of ranks' GPUs are told") {
  check_cases(
      {{"gpu-memory-errors",
        "n2: GPU 0 has had 1 uncorrected memory error since the driver was loaded", "ssh n2 dcgmi",
        [](CheckInput& input) { bad(input).health.volatile_errors = 1; }},
       {"gpu-xid", "n2: GPU 0 had Xid 79 (it fell off the bus) 5 min ago", "ssh n2 sudo dmesg",
        [](CheckInput& input) {
          bad(input).xids = {{79, 300, "x"}, {31, 1, "y"}};
        }},
       {"gpu-slowed", "n2: GPU 0 is slowed down by heat", "ssh n2 nvidia-smi",
        [](CheckInput& input) { bad(input).slowdown = "heat"; }}});
}

TEST_CASE("GPUs that others use, or that take no rank, are told") {
  const auto busy = [](const char* mode) {
    return [mode](CheckInput& input) {
      bad(input).compute_mode = mode;
      bad(input).use = {20ull << 30, 97, {{4711, 20ull << 30, "python3"}}};
    };
  };
  check_cases(
      {{"gpu-busy",
        "n2: GPU 0 has 20 GiB of its memory in use and is 97 % busy by python3 (pid 4711)",
        "ssh n2 nvidia-smi -i 0000:20:00.0", busy("default")},
       {"gpu-busy", "n2: GPU 0 has 12 GiB of its memory in use", "n2's line",
        [](CheckInput& input) { bad(input).use.used_bytes = 12ull << 30; }},
       {"gpu-taken", "n2: GPU 0 takes one process, and has python3 (pid 4711)",
        "-i 0000:20:00.0 --compute-mode=DEFAULT", busy("exclusive")},
       {"gpu-taken", "n2: GPU 0 takes one process, and is of 2 ranks", "--compute-mode=DEFAULT",
        [](CheckInput& input) {
          bad(input).compute_mode = "exclusive";
          for (PlannedRank& rank : input.plan.ranks)
            if (rank.host == 1) rank.gpus = {0};
        }},
       {"gpu-prohibited", "n2: GPU 0 is in compute mode 'prohibited'",
        "ssh n2 sudo nvidia-smi -i 0000:20:00.0", busy("prohibited")}});
  CheckInput input = gpu_hosts(1);
  busy("exclusive")(input = gpu_hosts(2));
  CHECK(!judge(input).can_start());
  busy("default")(input = gpu_hosts(2));
  CHECK(judge(input).can_start());
}

TEST_CASE("MIG mode is told where it has no device, or is on some hosts alone") {
  const auto cut = [](CheckInput& input, std::size_t host, std::size_t parts) {
    for (wire::InventoryGpu& gpu : told_by(input, host).gpus) {
      gpu.has_mig_mode = true;
      gpu.peers.clear();
      gpu.mig.resize(parts);
      for (std::size_t i = 0; i < parts; ++i) {
        gpu.mig[i].uuid = "MIG-" + gpu.uuid + "-" + std::to_string(i);
        gpu.mig[i].name = gpu.name + " MIG 3g.40gb";
        gpu.mig[i].memory_bytes = 40ull << 30;
      }
    }
  };
  CheckInput input = gpu_hosts(3);
  cut(input, 1, 1);
  CHECK(verdicts_of(input) == GpuVerdicts{"mig-differs: n2"});
  cut(input, 0, 1);
  cut(input, 2, 1);
  CHECK(verdicts_of(input) == GpuVerdicts{});
  for (wire::InventoryGpu& gpu : told_by(input, 2).gpus) gpu.mig[0].name += "+me.all";
  CHECK(verdicts_of(input) == GpuVerdicts{"gpu-models-differ: n3"});

  CheckInput without = gpu_hosts(2);
  cut(without, 1, 0);
  forget_plan(&without);
  without.plan_problem = Error(ErrorKind::kUsage, "no slots");
  CHECK(verdicts_of(without) == GpuVerdicts{"ranks-do-not-fit:", "mig-without-device: n2"});
}

TEST_CASE("links that are worse than they could be are told") {
  check_cases({{"pcie-narrow", "n2: GPU 0 (0000:20:00.0) has 8 of 16 PCIe lanes",
                "lspci -vv -s 0000:20", [](CheckInput& input) { bad(input).pcie.width = 8; }},
               {"peer-access-lacking",
                "n2: no peer access between GPU 0 and GPU 1: the chipset does not support it",
                "ssh n2 nvidia-smi topo",
                [](CheckInput& input) {
                  for (wire::InventoryGpu& gpu : told_by(input, 1).gpus)
                    gpu.peers[0].refusal = "the chipset does not support it";
                }},
               {"nvlink-lacking", "n[1,3]: NVLink joins its GPUs, n2: no NVLink between its GPUs",
                "ssh n2 sudo systemctl restart nvidia-fabricmanager", [](CheckInput& input) {
                  for (wire::InventoryGpu& gpu : told_by(input, 1).gpus) gpu.links.clear();
                }}});
}

TEST_CASE("links that no host has, or that fewer GPUs would need, are no finding") {
  CheckInput input = gpu_hosts(3);
  for (const std::size_t host : {0, 1, 2})
    for (wire::InventoryGpu& gpu : told_by(input, host).gpus) {
      gpu.links.clear();
      gpu.peers[0].refusal = "it is not supported";
    }
  CHECK(verdicts_of(input) == GpuVerdicts{});

  CheckInput one_each = gpu_hosts(2);
  for (wire::InventoryGpu& gpu : told_by(one_each, 1).gpus) gpu.links.clear();
  std::erase_if(one_each.plan.ranks,
                [](const PlannedRank& rank) { return rank.host == 1 && rank.gpus[0] == 1; });
  CHECK(verdicts_of(one_each) == GpuVerdicts{});  // n2's one GPU has nobody to reach
}

// Pairs joined by bridges: two such GPUs are in one part, four in two.
TEST_CASE("more GPUs in more parts are no worse than few in one") {
  CheckInput input = gpu_hosts(2);
  add_gpu(&input, 1);
  add_gpu(&input, 1);
  for (const std::size_t gpu : {0, 1, 2, 3})
    gpu_of(input, 1, gpu).links = {gpu_of(input, 1, gpu ^ 1).pci_address};
  for (PlannedRank& rank : input.plan.ranks)
    if (rank.host == 1) rank.gpus.push_back(rank.gpus[0] + 2);
  CHECK(verdicts_of(input) == GpuVerdicts{});
  gpu_of(input, 1, 2).links.clear();
  gpu_of(input, 1, 3).links.clear();
  CHECK(verdicts_of(input) == GpuVerdicts{});
  for (wire::InventoryGpu& gpu : told_by(input, 0).gpus) gpu.links.clear();
  CHECK(verdicts_of(input) == GpuVerdicts{});
  gpu_of(input, 1, 0).links = gpu_of(input, 1, 2).links = {"switch"};
  gpu_of(input, 1, 1).links = gpu_of(input, 1, 3).links = {"switch"};
  CHECK(verdicts_of(input) == GpuVerdicts{"nvlink-lacking: n1"});
}

TEST_CASE("of many GPUs of a host some are told") {
  CheckInput input = gpu_hosts(1);
  input.plan.ranks[0].gpus = {0, 1, 2, 3, 4, 5};
  for (int i = 0; i < 4; ++i) add_gpu(&input, 0);
  for (wire::InventoryGpu& gpu : told_by(input, 0).gpus) gpu.slowdown = "heat";
  CHECK(judge(input).findings.at(0).fact ==
        "n1: GPU 0 is slowed down by heat; GPU 1 is slowed down by heat; GPU 2 is slowed down by "
        "heat; GPU 3 is slowed down by heat; 2 more");
}

TEST_CASE("NCCL of several versions is told, where ranks have GPUs") {
  CheckInput input = gpu_hosts(3);
  for (const std::size_t host : {0, 1, 2})
    add_packages(&input, host, {{"nvidia-nccl-cu13", "2.28.3"}});
  CHECK(verdicts_of(input) == GpuVerdicts{});
  add_packages(&input, 1, {{"nvidia-nccl-cu12", "2.28.3"}});
  CHECK(verdicts_of(input) == GpuVerdicts{});
  add_packages(&input, 1, {{"nvidia-nccl-cu12", "2.28.3"}, {"nvidia-nccl-cu13", "2.27.5"}});
  CHECK(verdicts_of(input) == GpuVerdicts{});  // nobody knows which
  add_packages(&input, 1, {{"nvidia-nccl-cu13", "2.27.5"}});
  CHECK(verdicts_of(input) == GpuVerdicts{"nccl-differs: n2"});
  const CheckReport report = judge(input);
  CHECK(report.findings[0].fact == "n[1,3]: NCCL 2.28.3, n2: NCCL 2.27.5");
  CHECK(report.findings[0].fix.find("==2.28.3") != std::string::npos);
  CHECK(!report.can_start());
  for (PlannedRank& rank : input.plan.ranks) rank.gpus.clear();
  CHECK(verdicts_of(input) == GpuVerdicts{});
}

TEST_CASE("a package of a program that a host does not run is none of its") {
  CheckInput input = gpu_hosts(2);
  for (const std::size_t host : {0, 1}) {
    add_packages(&input, host, {{"nvidia-nccl-cu13", "2.28.3"}});
    input.hosts[host].told->programs.push_back(input.hosts[host].told->programs[0]);
  }
  input.hosts[1].told->programs[1].python[0].packages[0].second = "2.27.5";
  CHECK(verdicts_of(input) == GpuVerdicts{});
  for (PlannedRank& rank : input.plan.ranks) rank.program = rank.host;
  CHECK(verdicts_of(input) == GpuVerdicts{"nccl-differs: n2"});
}

TEST_CASE("where a driver tells nothing, or the kernel's log is kept from us, it is said") {
  CheckInput input = gpu_hosts(4);
  for (const std::size_t host : {1, 2}) {
    *input.hosts[host].inventory = {};
    input.hosts[host].inventory->inventory.gpu_problem = "libnvidia-ml.so.1: no such file";
  }
  input.hosts[0].inventory.reset();
  told_by(input, 3).xid_problem = "/dev/kmsg: Permission denied";
  const CheckReport report = judge(input);
  CHECK(report.findings.empty());
  REQUIRE(report.not_probed.size() == 3);
  CHECK(report.not_probed[0].hosts == std::vector<std::string>{"n2", "n3"});
  CHECK(report.not_probed[0].reason.find("libnvidia-ml.so.1: no such file") != std::string::npos);
  CHECK(report.not_probed[1].reason.find("HVRUN_INVENTORY_TIMEOUT") != std::string::npos);
  CHECK(report.not_probed[2].probe == "gpu-health");
  CHECK(report.not_probed[2].reason.find("/dev/kmsg: Permission denied") != std::string::npos);
  input.ranks_may_run = true;
  for (CheckedHost& host : input.hosts) host.is_asked_for_inventory = true;
  CHECK(judge(input).not_probed.size() == 2);
}

TEST_CASE("a driver that was asked too late is told so, and no GPUs are judged by no answer") {
  CheckInput input = gpu_hosts(3);
  input.hosts[0].inventory.reset();
  input.hosts[0].is_asked_for_inventory = true;
  *input.hosts[1].inventory = {};
  input.hosts[1].inventory->is_missing = true;
  const CheckReport report = judge(input);
  CHECK(report.findings.empty());
  REQUIRE(report.not_probed.size() == 2);
  CHECK(report.not_probed[0].reason.find("it has not answered in time") != std::string::npos);
  CHECK(report.not_probed[1].reason.find("came too late") != std::string::npos);
  input.ranks_may_run = true;
  input.hosts[0].is_asked_for_inventory = false;  // nor was it to be
  input.hosts[1].is_asked_for_inventory = true;
  REQUIRE(judge(input).not_probed.size() == 1);
  CHECK(judge(input).not_probed[0].hosts == std::vector<std::string>{"n2"});
}

}  // namespace
}  // namespace hv::launcher
