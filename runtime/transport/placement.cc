// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/placement.h"

#include <algorithm>
#include <map>
#include <string>

namespace hv::runtime {
namespace {

Status contradiction(int rank, const std::string& what) {
  return {StatusCode::kContract,
          "join the job: rank " + std::to_string(rank) + " " + what +
              "; do HVRUN_LOCAL_RANK, HVRUN_LOCAL_SIZE and HVRUN_CROSS_RANK of all ranks "
              "come from the same launcher?"};
}

}  // namespace

Status hosts_from_contract(const std::vector<RankIdentity>& identities, std::vector<int>* host_of) {
  std::map<int, int> size_of_host;  // by cross rank of local rank 0
  for (const RankIdentity& who : identities) {
    if (who.local_rank != 0) continue;
    if (!size_of_host.emplace(who.cross_rank, who.local_size).second)
      return contradiction(who.rank, "is a second local rank 0 with the cross rank " +
                                         std::to_string(who.cross_rank));
  }
  host_of->assign(identities.size(), -1);
  std::map<int, int> members;
  for (const RankIdentity& who : identities) {
    int nth = 0;
    for (const auto& [host, size] : size_of_host) {
      if (size <= who.local_rank || nth++ != who.cross_rank) continue;
      if (size != who.local_size)
        return contradiction(who.rank, "has another local size than local rank 0 of its host");
      (*host_of)[static_cast<std::size_t>(who.rank)] = host;
      ++members[host];
    }
    if ((*host_of)[static_cast<std::size_t>(who.rank)] < 0)
      return contradiction(who.rank, "is on a host that no local rank 0 is on");
  }
  for (const auto& [host, size] : size_of_host)
    if (members[host] != size)
      return contradiction(0, "counts another number of ranks on a host than there are");
  return Status::success();
}

Topology make_topology(int rank, const std::vector<int>& host_of) {
  Topology topology;
  topology.rank = rank;
  topology.size = static_cast<int>(host_of.size());
  std::map<int, int> number_of;
  for (int r = 0; r < topology.size; ++r) {
    const auto [entry, is_new] =
        number_of.emplace(host_of[static_cast<std::size_t>(r)], static_cast<int>(number_of.size()));
    topology.host_of.push_back(entry->second);
    if (is_new) topology.leaders.push_back(r);
  }
  topology.local_ranks = ranks_of_host(topology, topology.host_of[static_cast<std::size_t>(rank)]);
  return topology;
}

int local_index(const Topology& topology) {
  const auto& ranks = topology.local_ranks;
  return static_cast<int>(std::lower_bound(ranks.begin(), ranks.end(), topology.rank) -
                          ranks.begin());
}

std::vector<int> ranks_of_host(const Topology& topology, int host) {
  std::vector<int> ranks;
  for (int r = 0; r < topology.size; ++r)
    if (topology.host_of[static_cast<std::size_t>(r)] == host) ranks.push_back(r);
  return ranks;
}

}  // namespace hv::runtime
