// Reaches pods by `kubectl exec -i`: for hosts of Kubernetes' MPI operator, and for --rsh with a
// program named kubectl or oc.
// SPDX-License-Identifier: Apache-2.0
//
// kubectl exec runs words, not a line of shell: the start line is the argument of a /bin/sh -c.
// When kubectl ends, the pod's end of the stream closes, and where a container's runtime does not
// tell, the agent hears nothing any more: either way it ends the job there.
#pragma once

#include <memory>
#include <string>

#include "launcher/spawn/exec_spawner.h"
#include "launcher/spawn/late_hosts.h"
#include "launcher/spawn/spawner.h"

namespace hv::launcher {

// What reaches the hosts that are not local: --rsh says so, or nothing and whoever named them. No
// program: they are no pods. Throws Error(kUsage).
KubectlCommand kubectl_of_hosts(const std::string& remote_shell, const HostReach& reach);

class KubectlSpawner : public Spawner {
 public:
  KubectlSpawner(const SpawnOptions& options, ExecSpawner& exec, LateHosts& late)
      : options_(options), exec_(exec), late_(late) {}
  // Whether hosts that are not local are pods: --rsh says so, or nothing and whoever named them.
  bool reaches_hosts() const;
  // A pod that is not there or not ready yet is tried again until the start timeout.
  boost::asio::awaitable<std::unique_ptr<AgentChannel>> start(HostTarget host) override;
  std::string route(const HostTarget& host) override;
  std::string advice_if_lost(const HostTarget& host) override;

 private:
  KubectlCommand command() const;
  boost::asio::awaitable<std::unique_ptr<AgentChannel>> start_once(const KubectlCommand& command,
                                                                   const std::string& pod,
                                                                   StartDeadline& deadline);

  const SpawnOptions& options_;
  ExecSpawner& exec_;
  LateHosts& late_;
};

}  // namespace hv::launcher
