// The agent: hvrun's hand on one host. Its conversation with hvrun (src/wire/messages.h), as a
// state machine.
// SPDX-License-Identifier: Apache-2.0
//
//   greeted -> set up -> ready -> starting -> running -> ending -> leaving
//        \________\________\________\____________/    from anywhere: End, hvrun lost, a signal, the
//        guard lost
//   greeted -> sweeping -> leaving               a fresh agent that only clears up after a lost one
// Ending in order leaves with Empty once nothing runs and all output is out. When hvrun is lost
// nobody listens: output is dropped, and the grace is at most 2 s, so that nothing runs 5 s later
// (DESIGN §6, promise 1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/agent/ending/descendant_hunt.h"
#include "launcher/agent/ending/guard.h"
#include "launcher/agent/ending/job_ending.h"
#include "launcher/agent/ending/sweeper.h"
#include "launcher/agent/event_loop.h"
#include "launcher/agent/host_setup.h"
#include "launcher/agent/hvrun_link.h"
#include "launcher/agent/mpi/mpi_wiring.h"
#include "launcher/agent/postmortem/rank_post_mortem.h"
#include "launcher/agent/questions/address_probe.h"
#include "launcher/agent/questions/check_run.h"
#include "launcher/agent/questions/inventory_run.h"
#include "launcher/agent/questions/pair_run.h"
#include "launcher/agent/questions/stack_run.h"
#include "launcher/agent/ranks/local_ranks.h"
#include "launcher/agent/ranks/output_pump.h"
#include "launcher/agent/silence_watch.h"
#include "src/base/environment.h"
#include "src/base/unique_fd.h"
#include "src/wire/messages.h"

namespace hv::launcher {

class Agent {
 public:
  // environment: this process's own. stream: to hvrun. guard_life: readable once the guard is gone.
  // All signals are blocked.
  Agent(const Environment& environment, std::unique_ptr<HvrunStream> stream, UniqueFd guard_life,
        GuardBoard& board);

  // Until the job's part on this host is over; the exit code.
  int run();

 private:
  enum class Phase { kGreeted, kSetUp, kReady, kStarting, kRunning, kSweeping };

  // Messages of hvrun. False: not now, or not well formed.
  bool handle(const Frame& frame);
  bool prepare(const Frame& frame);  // before ranks run
  bool steer(const Frame& frame);    // at any time after Setup
  bool take_inventory(const wire::InventoryRequest& request);
  bool check(const wire::CheckRequest& request);
  bool set_up(const wire::Setup& setup);
  bool probe(const wire::ProbeRequest& request);
  bool measure(const wire::PairRequest& request);
  bool wire_mpi(const wire::WiringRequest& request);
  bool launch(wire::Launch launch);
  Status prepare_birth(std::size_t index, RankBirth* birth);
  bool go();
  void start_is_over(const Status& status);
  void start_no_more();
  std::vector<std::uint32_t> absent_ranks() const;
  bool take_input(const wire::Stdin& input);
  void add_credit(const wire::Credit& credit);
  void forward_signal(int number, std::size_t first = 0);
  void pause(bool stopped);
  void tell_silence(const wire::Silence& silence);

  // What happens on this host.
  void watch_signals();
  void take_signal();
  void signal_from_outside(int number);
  void told_to_end(int signal);
  void tell_own_end(const std::string& words);
  void child_ended(pid_t pid, int status);
  void rank_ended(RankProcess& rank, const ExitStatus& status);
  void guard_lost();
  void hvrun_lost(const std::string& reason);
  void beat();

  // The end.
  void end_job(Duration grace);
  void reap();
  void job_is_over();
  void sweep_on();
  void leave_if_done();
  Duration grace() const;

  const Environment& environment_;
  UniqueFd guard_life_;
  GuardBoard& board_;
  EventLoop loop_;
  HvrunLink link_;
  PumpRoom room_;
  SilenceWatch silence_;
  EventLoop::Timer next_beat_;
  UniqueFd signals_;
  Phase phase_ = Phase::kGreeted;
  std::unique_ptr<InventoryRun> inventory_;
  std::unique_ptr<CheckRun> check_;
  HostSetup host_;
  std::unique_ptr<AddressProbe> probe_;
  std::unique_ptr<PairRun> pairs_;
  MpiWiring mpi_;
  wire::Launch launch_;
  std::vector<std::string> programs_;  // by rank, in launch_'s order
  LocalRanks ranks_;
  RankPostMortem post_mortem_;
  StackRuns stacks_;
  // That came while ranks were being started: sent once each, by number, to those that have not had
  // them, which are all but so many of the first.
  std::map<int, std::size_t> signals_for_all_;
  DescendantPause pause_;
  JobEnding ending_;
  std::optional<Sweeper> sweeper_;
  bool sweep_is_done_ = false;
  bool has_children_ = false;
  bool leaves_when_done_ = false;  // hvrun said End, or nobody is left to say it
  bool said_empty_ = false;
  bool is_orphaned_ = false;  // the guard is gone: no Empty, hvrun shall count this host as lost
  int exit_code_ = 0;
};

}  // namespace hv::launcher
