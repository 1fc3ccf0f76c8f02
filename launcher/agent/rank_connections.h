// RankConnections: how the ranks of this host find the other ranks, and what hvrun learns about
// them: the rank socket of libhvrun (HostSetup), and MPI.
// SPDX-License-Identifier: Apache-2.0
//
// Before SetupRequest there is no rank socket, and no rank to report anything to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/agent/event_loop.h"
#include "launcher/agent/host_setup.h"
#include "launcher/agent/hvrun_link.h"
#include "launcher/agent/mpi/mpi_wiring.h"
#include "launcher/agent/ranks/local_ranks.h"
#include "launcher/agent/ranks/rank_process.h"
#include "src/process/exit_status.h"
#include "src/wire/messages.h"

namespace hv::launcher {

class RankConnections {
 public:
  RankConnections(HvrunLink& link, const LocalRanks& ranks, MpiWiring& mpi, HostSetup& host)
      : link_(link), ranks_(ranks), mpi_(mpi), host_(host) {}

  // Prepares the host for the job. Returns the first problem, if any.
  std::optional<wire::Problem> set_up(EventLoop& loop, const wire::SetupRequest& setup);
  // Before the ranks start.
  void expect_ranks();

  void pass_fence(const wire::FenceOut& out);
  // Reports a rank of another host that has died to those of this host.
  void report_death(const wire::RankDied& died);
  void pause_heartbeats(const wire::Silence& silence);
  // are_ranks_held: readers of stacks may have stopped them.
  wire::QueryReply answer(const wire::Query& query, bool are_ranks_held) const;
  // What the ranks of this host have reported of their training's steps.
  wire::StepsReply step_times() const;
  // The rank's process was reaped. Returns the report of its end, and reports a failure to the
  // other ranks of this host.
  wire::Exited end_rank(const RankProcess& rank, const ExitStatus& status);

 private:
  std::vector<std::uint32_t> absent_ranks() const;

  HvrunLink& link_;
  const LocalRanks& ranks_;
  MpiWiring& mpi_;
  HostSetup& host_;
};

}  // namespace hv::launcher
