// Whether process numbers from the kernel and drivers are those of this process's /proc.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace hv::launcher {

// A container has a PID namespace of its own, the kernel's log and NVIDIA's driver have the first's
// numbers. root: before /proc.
bool is_in_first_pid_namespace(const std::string& root = "");

}  // namespace hv::launcher
