// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/alltoall_room.h"

#include <numeric>
#include <string>

namespace hv::runtime {

Status check_received(const CollectiveRequest& request, const std::vector<std::int64_t>& received) {
  for (std::size_t rank = 0; rank < received.size(); ++rank) {
    const std::int64_t count = received[rank], most = request.counts_by_rank[rank];
    if (count >= 0 && count <= most) continue;
    return {StatusCode::kSystem, "rank " + std::to_string(rank) + " of the set sends " +
                                     std::to_string(count) + " rows and has " +
                                     std::to_string(most)};
  }
  return Status::success();
}

Status make_alltoall_room(const CollectiveRequest& request,
                          const std::vector<std::int64_t>& received, std::byte** room) {
  if (Status status = check_received(request, received); !status.ok()) return status;
  *room = request.make_room(received);
  const auto total = std::accumulate(received.begin(), received.end(), std::int64_t{0});
  if (*room != nullptr || total == 0 || request.row_counts.front() == 0) return Status::success();
  return {StatusCode::kMemory,
          "making room for what comes from the other ranks: out of memory; send fewer rows"};
}

}  // namespace hv::runtime
