// The agent on this very machine: a child process, no shell, no copy.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launcher/spawn/spawner.h"

namespace hv::launcher {

class LocalSpawner : public Spawner {
 public:
  explicit LocalSpawner(const SpawnOptions& options) : options_(options) {}
  boost::asio::awaitable<std::unique_ptr<AgentChannel>> start(HostTarget host) override;
  std::string advice_if_lost(const HostTarget& host) override;

 private:
  const SpawnOptions& options_;
};

}  // namespace hv::launcher
