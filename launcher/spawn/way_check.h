// What is wrong with the way to all hosts is told once, before any of them is connected to.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "launcher/spawn/spawner.h"

namespace hv::launcher {

// Looks at the program of --rsh, at what it would have to be told of a host, and at the key files
// that were named. Throws Error(kStart), and Error(kUsage) for an --rsh that is no command, or that
// a user, port or key cannot be passed on to.
void check_way(const SpawnOptions& options, const std::vector<HostTarget>& targets);

// The same with its options; may be empty.
using WayCheck = std::function<void(const std::vector<HostTarget>&)>;

}  // namespace hv::launcher
