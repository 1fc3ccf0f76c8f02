// Limits of a process of this user: soft limits, which ranks inherit, and limits of cgroups.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "src/base/environment.h"
#include "src/wire/check.h"

namespace hv::launcher {

void inspect_limits(const wire::CheckRequest& request, const Environment& environment,
                    wire::CheckReply* reply);

// Counts the threads of all processes of this process's user. Reads all of /proc.
std::uint64_t processes_of_user();

// Replaces the limit of processes by that of a cgroup which leaves fewer. root: prefix of every
// path, for tests.
void narrow_to_cgroups(const std::string& root, wire::LimitFacts* facts);

}  // namespace hv::launcher
