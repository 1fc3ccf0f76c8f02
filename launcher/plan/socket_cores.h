// The cores that a rankfile names by socket: which ones the host's system means by that. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "launcher/allocation/host_list.h"
#include "launcher/plan/core_binding.h"

namespace hv::launcher {

// All hardware threads of those cores, sorted. Sockets and their cores are counted from 0 in the
// order of their numbers, of those that may be used. Throws Error(kUsage) for one that the host
// does not have; rank and host: for the message.
std::vector<int> threads_of_sockets(const std::vector<SocketCores>& wanted,
                                    const std::vector<CoreFacts>& cores, int rank,
                                    const std::string& host);

}  // namespace hv::launcher
