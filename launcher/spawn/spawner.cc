// Which spawner starts which host.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/spawner.h"

#include "launcher/spawn/exec_spawner.h"
#include "launcher/spawn/local_spawner.h"
#include "launcher/spawn/ssh_spawner.h"

namespace hv::launcher {
namespace {

class SpawnerByHost : public Spawner {
 public:
  explicit SpawnerByHost(SpawnOptions options)
      : options_(std::move(options)),
        agent_(std::make_shared<AgentProgram>(options_.agent_program)),
        local_(options_),
        exec_(options_, agent_),
        ssh_(options_, agent_, exec_) {}
  boost::asio::awaitable<std::unique_ptr<AgentChannel>> start(HostTarget host) override {
    if (host.is_local) return local_.start(std::move(host));
    if (!options_.remote_shell.empty()) return exec_.start(std::move(host));
    return ssh_.start(std::move(host));
  }

 private:
  const SpawnOptions options_;
  std::shared_ptr<AgentProgram> agent_;
  LocalSpawner local_;
  ExecSpawner exec_;
  SshSpawner ssh_;
};

}  // namespace

std::string host_name_option(const std::string& address) {
  std::string option = "HostName=";
  for (const char c : address) option += c == '%' ? std::string("%%") : std::string(1, c);
  return option;
}

std::unique_ptr<Spawner> make_spawner(SpawnOptions options) {
  return std::make_unique<SpawnerByHost>(std::move(options));
}

}  // namespace hv::launcher
