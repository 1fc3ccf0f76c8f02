// What a process of this user may have: soft limits, which ranks inherit, and those of cgroups.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "src/base/environment.h"
#include "src/wire/check.h"

namespace hv::launcher {

void look_at_limits(const wire::CheckRequest& request, const Environment& environment,
                    wire::CheckReply* reply);

// Of this process's user, each thread for itself. Looks at all that run.
std::uint64_t processes_of_user();

// What the agent's cgroups allow of processes, where that leaves fewer. root: put before paths, for
// tests.
void narrow_to_cgroups(const std::string& root, wire::LimitFacts* facts);

}  // namespace hv::launcher
