// What is in this host, for the agent's Hello: from /proc, /sys and device nodes only, in about a
// millisecond.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/environment.h"
#include "src/wire/messages.h"

namespace hv::launcher {

// own: this process's environment. root: put before every path of a file, for tests.
wire::Facts gather_facts(const Environment& own, const std::string& root = "");

// How many cores this process may keep busy: its affinity, and what its cgroups allow.
// root: put before every path, for tests; "" is this machine.
unsigned usable_cores(const std::string& root = "");

// Cores that the cgroups of `own` (the text of /proc/self/cgroup) allow, rounded up; none without a
// limit. A group's limit binds everything below it, so the whole line of groups is read, in v2 and
// in v1.
std::optional<unsigned> quota_cores(const std::string& root);

// "max 100000", "150000 100000" (cpu.max of v2); none: no limit, or not that form.
std::optional<double> parse_cpu_max(const std::string& text);

// The NVIDIA GPUs of this host that this user may open, as the kernel driver lists them, in PCI
// order. No driver call is made. root: put before every path, for tests.
std::vector<wire::Gpu> read_gpus(const std::string& root = "");

// One "information" file of /proc/driver/nvidia/gpus; none when it lacks the device's minor number.
std::optional<wire::Gpu> parse_gpu(const std::string& pci_address, const std::string& information);

// How much memory the ranks of this host can have: the machine's, or what the cgroups allow where
// that is less; 0 when neither is known. root: as above.
std::uint64_t memory_bytes(const std::string& root = "");

// The GPU of that device node is cut into MIG instances, as the kernel driver shows by
// capabilities. No driver call is made. root: put before every path, for tests.
bool has_mig_instance(std::uint32_t minor, const std::string& root = "");

// This user may use the compute instance: the nodes of both capabilities can be opened, a
// scheduler's cgroup allowing. True where the driver does not tell their nodes.
bool may_open_mig(std::uint32_t minor, std::uint32_t gpu_instance, std::uint32_t compute_instance,
                  const std::string& root = "");

}  // namespace hv::launcher
