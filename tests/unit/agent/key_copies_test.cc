// The agent keeps the job's key where no core dump would hold it.
// SPDX-License-Identifier: Apache-2.0
#include "src/net/socket.h"
#include "src/rendezvous/messages.h"
#include "tests/unit/agent/agent_client.h"
#include "tests/unit/wire/key_search.h"

using namespace hv;
using namespace hv::tests;
using namespace std::chrono_literals;

TEST_CASE("an agent that got the job's key, and passed it to a rank, leaves no copy in a core") {
  AgentClient client;
  wire::SetupRequest setup;
  setup.key = random_key();
  const std::string name = client.set_up(setup).agent_socket;
  CHECK(dumped_copies(client.agent(), setup.key).empty());
  client.start(launch_of({"sleep", "1000"}));
  UniqueFd rank;
  REQUIRE(connect_unix(name, &rank).ok());
  const std::string join = encode_frame_of(rendezvous::Join{});
  REQUIRE(send_all(rank.get(), join.data(), join.size(), 5s).ok());
  char welcome[kFrameHeaderBytes + JobKey::kBytes];
  REQUIRE(read_exactly(rank.get(), welcome, sizeof welcome, 5s).ok());
  CHECK(std::memcmp(welcome + kFrameHeaderBytes, setup.key.data(), setup.key.size()) == 0);
  // The agent overwrites what it sent just after the send that has woken this thread.
  wait_until([&] { return dumped_copies(client.agent(), setup.key).empty(); },
             "the end of the last copy of the key");
  CHECK(client.finish(0) == 0);
}
