// Starts agents by a Slurm step: one srun for all hosts that are asked for at once.
// SPDX-License-Identifier: Apache-2.0
//
// srun passes the key on by its standard input; each agent then connects to this hvrun
// (agent_gate.h). srun stays until all of its agents have ended. What it prints on stderr are its
// agents' last words, too.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "launcher/spawn/slurm/agent_gate.h"
#include "launcher/spawn/slurm/srun_command.h"
#include "launcher/spawn/spawner.h"

namespace hv::launcher {

class SrunSpawner : public Spawner {
 public:
  explicit SrunSpawner(const SpawnOptions& options);
  boost::asio::awaitable<std::unique_ptr<AgentChannel>> start(HostTarget host) override;
  std::string route(const HostTarget& host) override;
  std::string advice_if_lost(const HostTarget& host) override;
  boost::asio::awaitable<void> tidy_up() override;

 private:
  struct Step;
  struct Arrival;  // an agent that is waited for
  struct Copies {
    std::shared_ptr<Step> step;
    std::string file;  // on each of its nodes, unless its agents have removed it
  };
  std::shared_ptr<Step> step_for(boost::asio::any_io_executor executor, const std::string& node);
  boost::asio::awaitable<void> run(std::shared_ptr<Step> step);
  boost::asio::awaitable<std::string> run_srun(std::shared_ptr<Step> step,
                                               const std::string& copy_as);
  boost::asio::awaitable<void> remove_copies(Copies copies);
  Arrival* awaited(const std::string& agent);
  void open_gate(const boost::asio::any_io_executor& executor);
  void wake(const Step& step);
  static Error failure(const std::string& words);

  const SpawnOptions& options_;
  std::vector<std::string> environment_;  // of srun
  std::unique_ptr<AgentGate> gate_;
  const std::map<std::string, int> component_of_;  // of nodes of a heterogeneous job
  std::map<int, std::shared_ptr<Step>> next_;      // to which hosts are still added, by component
  std::list<Arrival*> arrivals_;                   // each in its waiter's frame
  std::vector<Copies> copies_;
  bool is_over_ = false;  // nothing more is tried
};

}  // namespace hv::launcher
