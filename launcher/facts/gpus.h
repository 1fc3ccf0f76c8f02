// The NVIDIA GPUs of this host that this user may open, as the kernel driver lists them. No driver
// call is made.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/wire/messages.h"

namespace hv::launcher {

// In PCI order. root: put before every path, for tests.
std::vector<wire::Gpu> read_gpus(const std::string& root = "");

// One "information" file of /proc/driver/nvidia/gpus; none when it lacks the device's minor number.
std::optional<wire::Gpu> parse_gpu(const std::string& pci_address, const std::string& information);

}  // namespace hv::launcher
