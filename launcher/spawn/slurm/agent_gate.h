// AgentGate: where agents that somebody else has started (srun) come in by TCP.
// SPDX-License-Identifier: Apache-2.0
//
// Whoever connects must send a greeting of fixed size that names an agent which is awaited, and
// prove the key, within kTimeForProof; until then nothing that it sends is acted on. Where too many
// are under way at once the slow ones have to go, and further ones wait. io_context thread only.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launcher/spawn/spawner.h"
#include "src/net/port_range.h"
#include "src/wire/authentication.h"

namespace hv::launcher {

struct GateCallbacks {
  std::function<bool(const std::string& agent)> is_awaited;
  std::function<void(const std::string& agent, std::unique_ptr<AgentChannel> channel)> arrived;
};

class AgentGate {
 public:
  static constexpr std::size_t kMostGuests = 1024;
  static constexpr auto kTimeForProof = std::chrono::seconds(10);

  // Listens. Throws Error(kStart). Callbacks are not called once the gate is gone.
  AgentGate(boost::asio::any_io_executor executor, const PortRange& range, GateCallbacks callbacks);
  ~AgentGate();
  AgentGate(const AgentGate&) = delete;
  AgentGate& operator=(const AgentGate&) = delete;

  // What an agent must have.
  const JobKey& key() const;
  // Where it is to connect to, best first: "10.0.0.1:4711", "[fd00::1]:4711".
  const std::vector<std::string>& addresses() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the guests' coroutines
};

}  // namespace hv::launcher
