// How many cores this process may keep busy: its affinity, and what its cgroups allow.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace hv::launcher {

// root: put before every path, for tests; "" is this machine.
unsigned usable_cores(const std::string& root = "");

// Cores that the cgroups of this process allow, rounded up; none without a limit. A group's limit
// binds everything below it, so the whole line of groups is read, in v2 and in v1.
std::optional<unsigned> quota_cores(const std::string& root);

// "max 100000", "150000 100000" (cpu.max of v2); none: no limit, or not that form.
std::optional<double> parse_cpu_max(const std::string& text);

}  // namespace hv::launcher
