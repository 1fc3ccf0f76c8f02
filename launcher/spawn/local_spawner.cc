// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/local_spawner.h"

#include <boost/asio/this_coro.hpp>

#include "launcher/spawn/process_channel.h"

namespace hv::launcher {

boost::asio::awaitable<std::unique_ptr<AgentChannel>> LocalSpawner::start(HostTarget host) {
  Command command;
  command.argv = {"hvrun-agent"};
  command.program = options_.agent_program;
  command.environment = options_.environment.entries();
  co_return std::make_unique<ProcessChannel>(co_await boost::asio::this_coro::executor, command,
                                             AtClose::kLeave,
                                             "start the agent on host " + host.name);
}

std::string LocalSpawner::advice_if_lost(const HostTarget&) {
  return "see whether something here ends processes: dmesg, a limit of memory";
}

}  // namespace hv::launcher
