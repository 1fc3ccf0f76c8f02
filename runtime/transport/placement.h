// Which ranks share a host, worked out from the contract of all of them. Pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "runtime/transport/fabric.h"
#include "src/base/status.h"
#include "src/contract/contract.h"

namespace hv::runtime {

// identities[r] is what rank r was born with. The host of a rank is the cross_rank-th among the
// hosts that have its local rank, hosts being counted by their local rank 0. kContract when the
// numbers contradict.
Status hosts_from_contract(const std::vector<RankIdentity>& identities, std::vector<int>* host_of);

// Numbers hosts by first rank. host_of may hold any labels.
Topology make_topology(int rank, const std::vector<int>& host_of);

// This rank's position in topology.local_ranks.
int local_index(const Topology& topology);
// The ranks of one host, ascending.
std::vector<int> ranks_of_host(const Topology& topology, int host);

}  // namespace hv::runtime
