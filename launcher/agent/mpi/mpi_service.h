// MpiService: connects the MPI of this host's ranks when hvrun asks for that.
// SPDX-License-Identifier: Apache-2.0
//
// MpiWiring does the work; the agent calls it directly when ranks start, reach a fence, and end.
#pragma once

#include "launcher/agent/agent_service.h"
#include "launcher/agent/ending/guard.h"
#include "launcher/agent/mpi/mpi_wiring.h"

namespace hv::launcher {

class MpiService : public AgentService {
 public:
  // board: learns which directory the guard removes should the agent be killed.
  MpiService(const ServiceContext& agent, GuardBoard& board);

  Handled handle(const Frame& frame) override;
  bool child_ended(pid_t pid, const ExitStatus& status) override {
    return wiring_.child_ended(pid, status);
  }
  MpiWiring& wiring() { return wiring_; }

 private:
  void start(const wire::WiringRequest& request);

  const ServiceContext& agent_;
  GuardBoard& board_;
  MpiWiring wiring_;
};

}  // namespace hv::launcher
