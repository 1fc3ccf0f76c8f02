// The agent on another host over libssh, or by the system's ssh where the user's configuration
// needs that.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "launcher/spawn/exec_spawner.h"
#include "launcher/spawn/late_hosts.h"
#include "launcher/spawn/login_limiter.h"
#include "launcher/spawn/ssh/known_hosts.h"
#include "launcher/spawn/ssh/ssh_config.h"
#include "launcher/spawn/ssh/ssh_config_query.h"
#include "launcher/spawn/ssh/ssh_login.h"
#include "launcher/spawn/ssh/ssh_session.h"
#include "src/net/address.h"

namespace hv::launcher {

class SshSpawner : public Spawner {
 public:
  SshSpawner(const SpawnOptions& options, std::shared_ptr<AgentProgram> agent, LocalSpawner& local,
             ExecSpawner& exec, LateHosts& late, LoginLimiter& logins)
      : options_(options),
        agent_(std::move(agent)),
        local_(local),
        exec_(exec),
        late_(late),
        logins_(logins) {}
  // A host that is this machine is started by the local spawner: its name or its address says so,
  // and neither the user nor ssh's configuration states a user, port, key or other name for it.
  boost::asio::awaitable<std::unique_ptr<AgentChannel>> start(HostTarget host) override;
  std::string route(const HostTarget& host) override;
  std::string advice_if_lost(const HostTarget& host) override;

 private:
  using Channel = std::unique_ptr<AgentChannel>;
  boost::asio::awaitable<Channel> start_as_chosen(const HostTarget& host, const SshChoice& choice,
                                                  StartDeadline& deadline);
  // The addresses to connect to; none: the host is this machine.
  boost::asio::awaitable<std::vector<SocketAddress>> find_host(const HostTarget& host,
                                                               const SshChoice& choice,
                                                               StartDeadline& deadline);
  boost::asio::awaitable<Channel> start_by_libssh(const HostTarget& host, const SshConfig& config,
                                                  std::vector<SocketAddress> addresses,
                                                  StartDeadline& deadline);
  boost::asio::awaitable<Channel> start_by_system_ssh(const HostTarget& host,
                                                      const SshChoice& choice,
                                                      const std::string& reason,
                                                      StartDeadline& deadline);
  boost::asio::awaitable<std::shared_ptr<SshSession>> log_in_by_libssh(
      const HostTarget& host, const SshConfig& config, const KnownKeys& known,
      std::vector<SocketAddress> addresses, StartDeadline& deadline);
  boost::asio::awaitable<std::shared_ptr<SshSession>> connect(
      const HostTarget& host, const SshConfig& config, const KnownKeys& known,
      const std::vector<SocketAddress>& addresses, StartDeadline& deadline);
  void check_host_key(SshSession& session, const HostTarget& host, const SshConfig& config,
                      const KnownKeys& known) const;
  std::string agent_socket(const SshConfig& config) const;
  void tell_system_ssh(boost::asio::any_io_executor executor, const std::string& host,
                       const std::string& reason);

  const SpawnOptions& options_;
  std::shared_ptr<AgentProgram> agent_;
  LocalSpawner& local_;
  ExecSpawner& exec_;
  LateHosts& late_;
  LoginLimiter& logins_;
  std::set<std::string> own_names_;  // hosts that turned out to be this machine
  std::set<std::string> told_;       // hosts left to the system's ssh, each told once
  // Those of them that are to be told, by reason; together, a moment after the first.
  using HostsByReason = std::map<std::string, std::vector<std::string>>;
  std::shared_ptr<HostsByReason> untold_ = std::make_shared<HostsByReason>();
};

}  // namespace hv::launcher
