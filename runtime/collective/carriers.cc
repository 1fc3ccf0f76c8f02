// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/carriers.h"

#include <algorithm>
#include <utility>

#include "runtime/collective/lanes.h"
#include "runtime/transport/placement.h"
#include "runtime/transport/shm/host_memory.h"

namespace hv::runtime {
namespace {

class Refused : public Collective {
 public:
  explicit Refused(std::string words) : words_(std::move(words)) {}
  Progress advance() override { return Progress::kFailed; }
  Status status() const override { return {StatusCode::kUnsupported, words_}; }

 private:
  const std::string words_;
};

}  // namespace

Carriers plan_carriers(const Topology& topology) {
  Carriers plan;
  plan.carrier_of.resize(static_cast<std::size_t>(topology.size));
  plan.place_of.resize(static_cast<std::size_t>(topology.size));
  const int hosts = static_cast<int>(topology.leaders.size()), here = host_index(topology);
  for (int distance = 0; distance < hosts; ++distance) {
    const int host = (here + distance) % hosts;
    const std::vector<int> members = ranks_of_host(topology, host);
    std::vector<int> load(members.size(), 0);
    std::vector<int> local_of_host(topology.leaders.size(), 0);
    for (int rank = 0; rank < topology.size; ++rank) {
      const auto home = static_cast<std::size_t>(topology.host_of[static_cast<std::size_t>(rank)]);
      const auto carrier = static_cast<std::size_t>(local_of_host[home]++) % members.size();
      const int place = load[carrier]++;
      plan.most = std::max(plan.most, place + 1);
      if (host == here) {
        plan.carrier_of[static_cast<std::size_t>(rank)] = static_cast<int>(carrier);
        plan.place_of[static_cast<std::size_t>(rank)] = place;
      } else if (rank == topology.rank) {
        plan.remote_carriers.push_back(members[carrier]);
      }
    }
  }
  return plan;
}

std::size_t piece_bytes(std::size_t slot_bytes, int pieces) {
  const std::size_t share = slot_bytes / static_cast<std::size_t>(pieces);
  const std::size_t unit = share >= kCacheLine ? kCacheLine : kWordBytes;
  return share / unit * unit;
}

std::unique_ptr<Collective> refused(std::string words) {
  return std::make_unique<Refused>(std::move(words));
}

}  // namespace hv::runtime
