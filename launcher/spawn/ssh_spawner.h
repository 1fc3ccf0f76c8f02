// The agent on another host over libssh, or by the system's ssh where the user's configuration
// needs that.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "launcher/spawn/exec_spawner.h"
#include "launcher/spawn/known_hosts.h"
#include "launcher/spawn/ssh_config.h"
#include "launcher/spawn/ssh_login.h"
#include "launcher/spawn/ssh_session.h"

namespace hv::launcher {

class SshSpawner : public Spawner {
 public:
  SshSpawner(const SpawnOptions& options, std::shared_ptr<AgentProgram> agent, ExecSpawner& exec)
      : options_(options), agent_(std::move(agent)), exec_(exec) {}
  boost::asio::awaitable<std::unique_ptr<AgentChannel>> start(HostTarget host) override;

 private:
  using Channel = std::unique_ptr<AgentChannel>;
  boost::asio::awaitable<Channel> start_by_libssh(const HostTarget& host, const SshConfig& config,
                                                  StartDeadline& deadline);
  boost::asio::awaitable<Channel> start_by_system_ssh(const HostTarget& host, bool accept_new_keys,
                                                      const std::string& reason,
                                                      StartDeadline& deadline);
  boost::asio::awaitable<std::shared_ptr<SshSession>> connect(const HostTarget& host,
                                                              const SshConfig& config,
                                                              const KnownKeys& known,
                                                              StartDeadline& deadline);
  void check_host_key(SshSession& session, const HostTarget& host, const SshConfig& config,
                      const KnownKeys& known) const;
  std::string agent_socket(const SshConfig& config) const;
  void tell_system_ssh(boost::asio::any_io_executor executor, const std::string& host,
                       const std::string& reason);

  const SpawnOptions& options_;
  std::shared_ptr<AgentProgram> agent_;
  ExecSpawner& exec_;
  // Hosts left to the system's ssh, by reason; told together a moment after the first.
  using HostsByReason = std::map<std::string, std::vector<std::string>>;
  std::shared_ptr<HostsByReason> untold_ = std::make_shared<HostsByReason>();
};

}  // namespace hv::launcher
