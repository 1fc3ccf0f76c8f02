// The fabric and what the job's store tells it.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/mesh_fabric.h"

#include <doctest/doctest.h>

#include <memory>
#include <thread>

#include "runtime/transport/selection.h"
#include "src/rendezvous/inproc_store.h"

namespace hv::runtime {
namespace {

std::unique_ptr<Fabric> join(Store& store, int rank) {
  RankIdentity who;
  who.rank = who.local_rank = rank;
  who.size = who.local_size = 2;
  who.job_id = "mesh-fabric-test";
  FabricConfig config;
  config.local = LocalTransport::kInproc;
  Status status;
  return connect_fabric(who, store, config, &status);
}

}  // namespace

TEST_CASE("the loss of a rank that the job does not have is no loss, and harms nothing") {
  InprocStoreHub hub(2);
  const auto zero_store = hub.store(0), one_store = hub.store(1);
  std::unique_ptr<Fabric> zero, one;
  std::thread other([&] { one = join(*one_store, 1); });
  zero = join(*zero_store, 0);
  other.join();
  REQUIRE(zero);
  REQUIRE(one);
  for (const int stranger : {2, 1 << 30, -1}) hub.announce_loss(stranger, "ended");
  hub.announce_loss(1, "ended at last");
  const TimePoint deadline = now() + std::chrono::seconds(10);
  while (zero->health().ok() && now() < deadline) {
    const std::uint32_t seen = zero->doorbell().value();
    zero->progress();
    if (zero->health().ok()) zero->doorbell().wait(seen, deadline);
  }
  CHECK(zero->health().message == "rank 1 ended at last");
}

}  // namespace hv::runtime
