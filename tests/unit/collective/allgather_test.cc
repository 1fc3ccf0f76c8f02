// What allgather's plan finds before a byte moves.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/allgather.h"

#include <doctest/doctest.h>

#include <stdexcept>

#include "runtime/device/kernels.h"
#include "runtime/transport/inproc/inproc_source.h"
#include "runtime/transport/placement.h"
#include "runtime/transport/shm/host_memory.h"

namespace hv::runtime {
namespace {

constexpr std::size_t kSlotBytes = 4096;

// One rank alone on its host, many on another.
class UnevenPlane : public DataPlane {
 public:
  explicit UnevenPlane(int others) {
    std::vector<int> host_of(static_cast<std::size_t>(others) + 1, 1);
    host_of[0] = 0;
    topology_ = make_topology(0, host_of);
  }
  const Topology& topology() const override { return topology_; }
  SlotRings& host() override { return rings_; }
  Channel& channel(int, int) override { throw std::logic_error("nothing is sent"); }
  Status health() const override { return Status::success(); }
  bool is_healthy() const override { return true; }

 private:
  Topology topology_;
  const HostGeometry geometry_{1, kSlotBytes};
  HostMemory memory_{inproc_memory("allgather_test", geometry_.total_bytes()), geometry_, 0};
  SlotRings rings_{memory_, {{0, 0}}, 0};
};

}  // namespace

TEST_CASE("an allgather that one rank cannot carry, not even a word of each, says so") {
  const int others = kSlotBytes / 8;  // and this rank's own
  UnevenPlane plane(others);
  RingQueue rings;
  CollectiveRequest request;
  request.kind = CollectiveKind::kAllgather;
  request.counts_by_rank.assign(static_cast<std::size_t>(others) + 1, 1);
  request.segments.push_back({nullptr, nullptr, 1});
  const auto collective = allgather_pieces({plane, rings, best_kernels(), request});
  CHECK(collective->advance() == Progress::kFailed);
  CHECK(collective->status().code == StatusCode::kUnsupported);
  CHECK(collective->status().message.find("the rows of 513 ranks") != std::string::npos);
  CHECK(collective->status().message.find("smallest host") != std::string::npos);
}

}  // namespace hv::runtime
