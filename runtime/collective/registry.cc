// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/registry.h"

#include <cstdint>
#include <cstring>

#include "runtime/collective/allgather.h"
#include "runtime/collective/allreduce.h"
#include "runtime/collective/barrier.h"
#include "runtime/collective/broadcast.h"
#include "src/base/check.h"

namespace hv::runtime {
namespace {

bool always(const CollectiveRequest&, const Topology&) { return true; }
bool is_alone(const CollectiveRequest&, const Topology& topology) { return topology.size == 1; }
bool is_pair(const CollectiveRequest&, const Topology& topology) {
  return topology.size == 2 && topology.leaders.size() == 1;
}
bool is_one_host(const CollectiveRequest&, const Topology& topology) {
  return topology.leaders.size() == 1;
}

std::size_t bytes_of(const CollectiveRequest& request) {
  std::int64_t count = 0;
  for (const Segment& segment : request.segments) count += segment.count;
  return static_cast<std::size_t>(count) * element_size(request.type);
}

}  // namespace

const std::vector<Algorithm>& algorithms() {
  static const std::vector<Algorithm> list = {
      {"alone", CollectiveKind::kAllreduce, "one rank", is_alone, allreduce_alone, SIZE_MAX},
      {"direct", CollectiveKind::kAllreduce, "two ranks on one host", is_pair, allreduce_direct,
       SIZE_MAX},
      {"direct", CollectiveKind::kAllreduce, "one host", is_one_host, allreduce_direct, 16 << 10},
      {"shares", CollectiveKind::kAllreduce, "none", always, allreduce_shares, SIZE_MAX},
      {"pieces", CollectiveKind::kAllgather, "none", always, allgather_pieces, SIZE_MAX},
      {"tree", CollectiveKind::kBroadcast, "none", always, broadcast_tree, SIZE_MAX},
      {"byte", CollectiveKind::kBarrier, "none", always, barrier, SIZE_MAX},
  };
  return list;
}

const Algorithm* find_algorithm(const char* name) {
  for (const Algorithm& algorithm : algorithms())
    if (std::strcmp(algorithm.name, name) == 0) return &algorithm;
  return nullptr;
}

const Algorithm& choose_algorithm(const CollectiveRequest& request, const Topology& topology) {
  const std::size_t bytes = bytes_of(request);
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.kind == request.kind && bytes <= algorithm.up_to_bytes &&
        algorithm.fits(request, topology))
      return algorithm;
  }
  HV_CHECK(false, "every kind of collective has an algorithm without restrictions");
}

std::unique_ptr<Collective> start_collective(CollectiveSetup setup) {
  const Algorithm& algorithm = choose_algorithm(setup.request, setup.plane.topology());
  return algorithm.make(std::move(setup));
}

}  // namespace hv::runtime
