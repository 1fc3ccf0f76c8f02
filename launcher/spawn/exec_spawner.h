// Reaches hosts by a command: `CMD host <start line>`. For --rsh, and for the system's ssh where
// libssh does not suffice.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launcher/spawn/agent_program.h"
#include "launcher/spawn/host_advice.h"
#include "launcher/spawn/late_hosts.h"
#include "launcher/spawn/login_limiter.h"
#include "launcher/spawn/spawner.h"
#include "launcher/spawn/start_deadline.h"

namespace hv::launcher {

// Words of a command line as a shell would split them: blanks, '...', "...", backslash. Throws
// Error(kUsage).
std::vector<std::string> split_command(const std::string& text);

// Whether a command's program takes ssh's options.
bool is_ssh(const std::string& program);

// Error(kUsage) for a host with a user, port or key that a command's program has no known word for:
// ssh has one for each, rsh for the user.
void check_login(const std::string& program, const HostTarget& host);

// Error(kUsage) for a host whose name or user a command would take for an option.
void check_name(const HostTarget& host);

// The system's ssh for one host: never asks, never forwards, runs one command, checks keys as hvrun
// does.
std::vector<std::string> system_ssh_command(const HostTarget& host, bool accept_new_host_keys,
                                            Duration timeout);

class ExecSpawner : public Spawner {
 public:
  ExecSpawner(const SpawnOptions& options, std::shared_ptr<AgentProgram> agent, LateHosts& late,
              LoginLimiter& logins)
      : options_(options), agent_(std::move(agent)), late_(late), logins_(logins) {}
  // By options.remote_shell; user, port and identity file are passed as ssh's -l, -p and -i when
  // they are given. Only a program named ssh can be told these, and to accept new host keys:
  // Error(kUsage) for another.
  boost::asio::awaitable<std::unique_ptr<AgentChannel>> start(HostTarget host) override;
  std::string route(const HostTarget& host) override;
  std::string advice_if_lost(const HostTarget& host) override;
  // Runs these words with the start line behind them. has_logged_in: see BootstrapPlan.
  boost::asio::awaitable<std::unique_ptr<AgentChannel>> start_by(
      std::vector<std::string> words, HostAdvice host, StartDeadline& deadline,
      std::function<void()> has_logged_in);
  // The same for ssh, among the logins through this gate (LoginLimiter). Throws LoginRefused, too.
  boost::asio::awaitable<std::unique_ptr<AgentChannel>> start_by_ssh(std::vector<std::string> words,
                                                                     HostAdvice host,
                                                                     std::string gate,
                                                                     StartDeadline& deadline);

 private:
  const SpawnOptions& options_;
  std::shared_ptr<AgentProgram> agent_;
  LateHosts& late_;
  LoginLimiter& logins_;
};

}  // namespace hv::launcher
