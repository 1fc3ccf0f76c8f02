// The agent: hvrun's hand on one host. Its conversation with hvrun (src/wire/messages.h), whose
// phases are those of agent_phase.h.
// SPDX-License-Identifier: Apache-2.0
//
// An end in order leaves with Empty once nothing runs and all output has been sent. When hvrun is
// lost, output is dropped and the grace is at most 2 s: hvrun promises that no process of a job
// runs 5 s after its loss.
#pragma once

#include <sys/types.h>

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "launcher/agent/agent_phase.h"
#include "launcher/agent/agent_service.h"
#include "launcher/agent/ending/guard.h"
#include "launcher/agent/ending/job_ending.h"
#include "launcher/agent/ending/sweeper.h"
#include "launcher/agent/event_loop.h"
#include "launcher/agent/heartbeat.h"
#include "launcher/agent/host_setup.h"
#include "launcher/agent/hvrun_link.h"
#include "launcher/agent/mpi/mpi_service.h"
#include "launcher/agent/postmortem/rank_post_mortem.h"
#include "launcher/agent/process_events.h"
#include "launcher/agent/queries/check_run.h"
#include "launcher/agent/queries/inventory_run.h"
#include "launcher/agent/queries/pair_run.h"
#include "launcher/agent/queries/stack_run.h"
#include "launcher/agent/rank_connections.h"
#include "launcher/agent/ranks/rank_run.h"
#include "src/base/environment.h"
#include "src/base/unique_fd.h"
#include "src/wire/messages.h"

namespace hv::launcher {

// The services, in the order in which a message or an ended child is offered to them.
struct AgentServices {
  AgentServices(ServiceContext agent, GuardBoard& board);
  std::array<AgentService*, 6> all() {
    return {&inventory, &check, &pairs, &stacks, &mpi, &post_mortem};
  }
  bool is_any_awaited();

  const ServiceContext context;
  InventoryService inventory;
  CheckService check;
  PairService pairs;
  StackService stacks;
  MpiService mpi;
  RankPostMortem post_mortem;
};

class Agent {
 public:
  // environment: this process's own. stream: to hvrun. guard_life: readable once the guard is gone.
  // All signals are blocked.
  Agent(const Environment& environment, std::unique_ptr<HvrunStream> stream, UniqueFd guard_life,
        GuardBoard& board);

  // Runs until this host's part of the job is over. Returns the exit code.
  // lost_after: how long a silent hvrun is waited for until SetupRequest says it; none: a minute.
  int run(std::optional<Duration> lost_after);

 private:
  // hvrun's messages. False: not allowed in this phase, or malformed.
  bool handle(const Frame& frame);
  bool handle_phase(const Frame& frame);  // Ping, Pong, and messages that may change the phase
  bool handle_ranks(const Frame& frame);  // messages about ranks
  bool set_up(const wire::SetupRequest& setup);
  bool launch(wire::Launch launch);
  void go();
  void finish_start(const Status& status);
  void pause(bool stopped);

  // Events of this host.
  void signal_arrived(int number);
  bool does_slurm_signal_ranks() const;
  bool is_in_slurm_step() const;
  void report_own_end(const std::string& text, bool leaves_grace);
  void child_ended(pid_t pid, const ExitStatus& status);
  void rank_ended(RankProcess& rank, const ExitStatus& status);
  void reap();
  void guard_lost();
  void hvrun_lost(const std::string& reason);

  // The end.
  void advance(AgentEvent event);
  void end_job(Duration grace, JobEnding::Sigterm sigterm = JobEnding::Sigterm::kToSend);
  void finish_job();
  void sweep();
  void leave_if_done();
  Duration grace() const;

  const Environment& environment_;
  GuardBoard& board_;
  EventLoop loop_;
  HvrunLink link_;
  Heartbeat heartbeat_;
  ProcessEvents events_;
  AgentPhase phase_ = AgentPhase::kGreeted;
  std::optional<LeaveReason> leave_reason_;
  HostSetup host_;
  RankRun ranks_;
  AgentServices services_;
  RankConnections connections_;
  JobEnding ending_;
  std::optional<Sweeper> sweeper_;
};

}  // namespace hv::launcher
