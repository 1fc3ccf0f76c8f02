// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/set_plane.h"

#include <algorithm>
#include <map>

#include "src/base/check.h"

namespace hv::runtime {
namespace {

// Of the members on this host, in the set's order: their place on the host, and their cell.
std::vector<SlotRings::Place> places_on_host(const Topology& job, const Topology& set,
                                             const SetPlacement& placement) {
  std::vector<SlotRings::Place> places;
  for (const int member : set.local_ranks) {
    const int rank = placement.members[static_cast<std::size_t>(member)];
    const auto local = std::lower_bound(job.local_ranks.begin(), job.local_ranks.end(), rank);
    places.push_back({static_cast<int>(local - job.local_ranks.begin()),
                      placement.cells[static_cast<std::size_t>(member)]});
  }
  return places;
}

int place_on_host(const Topology& set) {
  const auto self = std::lower_bound(set.local_ranks.begin(), set.local_ranks.end(), set.rank);
  return static_cast<int>(self - set.local_ranks.begin());
}

// To each member on another host.
template <typename Act>
void for_lanes(DataPlane& set, Act act) {
  const Topology& topology = set.topology();
  const int own_host = topology.host_of[static_cast<std::size_t>(topology.rank)];
  for (int member = 0; member < topology.size; ++member) {
    if (topology.host_of[static_cast<std::size_t>(member)] == own_host) continue;
    for (int lane = 1; lane <= kLanesPerSet; ++lane) act(set.channel(member, lane));
  }
}

}  // namespace

Topology topology_of_set(const Topology& job, const std::vector<int>& members) {
  Topology set;
  set.size = static_cast<int>(members.size());
  std::map<int, int> hosts;  // the job's number of a host, the set's
  for (int member = 0; member < set.size; ++member) {
    const int rank = members[static_cast<std::size_t>(member)];
    const int job_host = job.host_of[static_cast<std::size_t>(rank)];
    const auto [host, is_new] = hosts.emplace(job_host, static_cast<int>(hosts.size()));
    set.host_of.push_back(host->second);
    if (is_new) set.leaders.push_back(member);
    if (rank == job.rank) set.rank = member;
    if (job_host == job.host_of[static_cast<std::size_t>(job.rank)])
      set.local_ranks.push_back(member);
  }
  HV_CHECK(std::binary_search(members.begin(), members.end(), job.rank), "this rank is a member");
  return set;
}

SetPlane::SetPlane(DataPlane& job, const SetPlacement& placement)
    : job_(job),
      members_(placement.members),
      topology_(topology_of_set(job.topology(), members_)),
      first_lane_(placement.lanes * kLanesPerSet),
      rings_(job.host().memory(), places_on_host(job.topology(), topology_, placement),
             place_on_host(topology_)) {
  for_lanes(*this, [](Channel&) {});  // asked for, they are open
}

void clear_set(DataPlane& set) {
  set.host().clear();
  for_lanes(set, [](Channel& lane) { lane.shrink(); });
}

}  // namespace hv::runtime
