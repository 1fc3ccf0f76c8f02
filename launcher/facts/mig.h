// MIG instances, as the kernel driver shows them as capabilities. No driver call is made.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace hv::launcher {

// The GPU of that device node is cut into instances. root: put before every path, for tests.
bool has_mig_instance(std::uint32_t minor, const std::string& root = "");

// This user may use the compute instance: the nodes of both capabilities can be opened, a
// scheduler's cgroup allowing. True where the driver does not tell their nodes.
bool may_open_mig(std::uint32_t minor, std::uint32_t gpu_instance, std::uint32_t compute_instance,
                  const std::string& root = "");

}  // namespace hv::launcher
