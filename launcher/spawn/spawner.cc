// Which spawner starts which host.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/spawner.h"

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <chrono>
#include <cstdio>
#include <set>

#include "launcher/spawn/exec_spawner.h"
#include "launcher/spawn/kubectl_spawner.h"
#include "launcher/spawn/late_hosts.h"
#include "launcher/spawn/process_channel.h"
#include "launcher/spawn/slurm/srun_spawner.h"
#include "launcher/spawn/ssh/identity_file.h"
#include "launcher/spawn/ssh/ssh_spawner.h"
#include "src/base/text.h"
#include "src/process/command.h"

namespace hv::launcher {
namespace {

class SpawnerByHost : public Spawner {
 public:
  explicit SpawnerByHost(SpawnOptions options)
      : options_(std::move(options)),
        agent_(std::make_shared<AgentProgram>(options_.agent_program)),
        local_(options_),
        exec_(options_, agent_, late_, logins_),
        kubectl_(options_, exec_, late_),
        ssh_(options_, agent_, local_, exec_, late_, logins_),
        srun_(options_) {}
  boost::asio::awaitable<std::unique_ptr<AgentChannel>> start(HostTarget host) override {
    Spawner& spawner = of(host);
    return spawner.start(std::move(host));
  }
  std::string route(const HostTarget& host) override { return of(host).route(host); }
  std::string advice_if_lost(const HostTarget& host) override {
    return of(host).advice_if_lost(host);
  }
  boost::asio::awaitable<void> tidy_up() override { return srun_.tidy_up(); }

 private:
  Spawner& of(const HostTarget& host) {
    if (options_.by_srun) return srun_;
    if (host.is_local) return local_;
    if (kubectl_.reaches_hosts()) return kubectl_;
    if (!options_.remote_shell.empty()) return exec_;
    return ssh_;
  }

  const SpawnOptions options_;
  std::shared_ptr<AgentProgram> agent_;
  LateHosts late_;
  LoginLimiter logins_;
  LocalSpawner local_;
  ExecSpawner exec_;
  KubectlSpawner kubectl_;
  SshSpawner ssh_;
  SrunSpawner srun_;
};

}  // namespace

std::string host_name_option(const std::string& address) {
  std::string option = "HostName=";
  for (const char c : address) option += c == '%' ? std::string("%%") : std::string(1, c);
  return option;
}

std::vector<std::string> agent_words(const SpawnOptions& options) {
  const double seconds = std::chrono::duration<double>(options.lost_after).count();
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", seconds);
  return {"--lost-after", text};
}

std::unique_ptr<Spawner> make_spawner(SpawnOptions options) {
  return std::make_unique<SpawnerByHost>(std::move(options));
}

boost::asio::awaitable<std::unique_ptr<AgentChannel>> LocalSpawner::start(HostTarget host) {
  Command command;
  command.argv = agent_words(options_);
  command.argv.insert(command.argv.begin(), "hvrun-agent");
  command.program = options_.agent_program;
  command.environment = options_.environment.entries();
  co_return std::make_unique<ProcessChannel>(co_await boost::asio::this_coro::executor, command,
                                             AtClose::kLeave,
                                             "start the agent on host " + host.name);
}

std::string LocalSpawner::route(const HostTarget&) { return "this machine"; }

std::string LocalSpawner::advice_if_lost(const HostTarget&) {
  return "see whether something here ends processes: dmesg, a limit of memory";
}

namespace {

void check_remote_shell(const SpawnOptions& options) {
  const std::string program = split_command(options.remote_shell).at(0);
  std::string reason;
  if (!find_program(program, options.environment.get_or("PATH", ""), "", &reason).empty()) return;
  throw Error(ErrorKind::kStart,
              "reach hosts by '" + printable(options.remote_shell) +
                  "' (--rsh): find the program " + printable(program) + ": " + reason,
              "install it on this machine, or correct --rsh or HVRUN_RSH");
}

}  // namespace

void check_way(const SpawnOptions& options, const std::vector<HostTarget>& targets) {
  const bool is_all_local = std::all_of(targets.begin(), targets.end(),
                                        [](const HostTarget& host) { return host.is_local; });
  if (is_all_local || options.by_srun || !options.reach.kubectl.program.empty()) return;
  if (!options.remote_shell.empty()) {
    check_remote_shell(options);
    const std::string program = split_command(options.remote_shell).at(0);
    if (is_kubectl(program)) return;
    for (const HostTarget& host : targets)
      if (!host.is_local) check_login(program, host);
    if (!is_ssh(program)) return;
  }
  std::set<std::string> looked_at;
  for (const HostTarget& host : targets)
    if (!host.is_local && looked_at.insert(host.identity_file).second)
      check_identity_file(host.identity_file);
}

}  // namespace hv::launcher
