// Tests of the store of ranks that are threads.
// SPDX-License-Identifier: Apache-2.0
#include "src/rendezvous/inproc_store.h"

#include <doctest/doctest.h>

#include <thread>

using namespace hv;
using std::chrono::milliseconds;

TEST_CASE("what was put before a fence can be got after it, by everyone") {
  InprocStoreHub hub(3);
  std::vector<std::string> got(3);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([&hub, &got, rank] {
      const auto store = hub.store(rank);
      const bool met =
          store->put("k", "v" + std::to_string(rank)).ok() && store->fence(milliseconds(5000)).ok();
      std::string value;
      if (met && store->get((rank + 1) % 3, "k", &value).ok())
        got[static_cast<std::size_t>(rank)] = value;
    });
  }
  for (std::thread& rank : ranks) rank.join();
  CHECK(got == std::vector<std::string>{"v1", "v2", "v0"});
}

TEST_CASE("a fence that not all reach times out") {
  InprocStoreHub hub(2);
  CHECK(hub.store(0)->fence(milliseconds(10)).code == StatusCode::kSystem);
}

TEST_CASE("a loss ends a fence with the name, and is told as an event") {
  InprocStoreHub hub(2);
  const auto store = hub.store(0);
  hub.announce_loss(1, "ended");
  const Status status = store->fence(milliseconds(5000));
  CHECK(status.code == StatusCode::kPeerLost);
  CHECK(status.message.find("rank 1 ended") != std::string::npos);
  PeerEvent event;
  REQUIRE(store->next_event(&event));
  CHECK(event.rank == 1);
}
