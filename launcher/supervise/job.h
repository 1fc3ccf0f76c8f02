// Job: everything hvrun knows of a running job, by host and by rank. Touched by the io_context
// thread only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/plan/launch_plan.h"
#include "launcher/record/job_record.h"
#include "launcher/spawn/spawner.h"
#include "launcher/supervise/failure_policy.h"
#include "launcher/supervise/fence_table.h"
#include "launcher/supervise/hosts/host_link.h"
#include "src/base/error.h"
#include "src/wire/check.h"
#include "src/wire/messages.h"
#include "src/wire/mpi_wiring.h"
#include "src/wire/stacks.h"

namespace hv::launcher {

// One host, from the first connection to the agent's farewell.
//
//   connecting -> hello -> (inventory) -> set up -> (probed, wired) -> ready -> started -> empty
//        \________\__________\__________\__________\_________\______-> lost
struct HostState {
  HostTarget target;
  std::shared_ptr<HostLink> link;
  std::optional<Error> error;  // the agent could not be started
  std::optional<wire::Hello> hello;
  TimePoint hello_at{};
  bool is_asked_for_inventory = false;
  std::optional<wire::InventoryReply> inventory;
  std::optional<wire::SetUp> set_up;
  std::optional<wire::ProbeReply> probe;
  std::optional<wire::CheckReply> told;     // in a check, or after a failure
  std::optional<wire::PairReply> measured;  // in a check only
  bool is_measuring = false;
  std::optional<wire::WiringReply> wiring;
  std::optional<wire::Problem> problem;  // the agent could not do what it was asked
  bool ready = false;
  bool started = false;
  bool empty = false;
  bool lost = false;
  std::string lost_reason;
  bool gave_up = false;             // its agent ends the job there, and nobody had asked for that
  std::string gave_up_advice;       // what to do about it; may be empty
  std::optional<Error> after_loss;  // why no second agent could be started there
  std::vector<int> ranks;
  std::uint32_t query_answered = 0;
  std::vector<std::uint32_t> exiting;          // as of that answer
  std::vector<std::uint32_t> stopped;          // as of that answer
  std::vector<std::uint32_t> absent;           // as of that answer
  std::vector<std::uint32_t> in_pmi, in_pmix;  // as of that, too
  // Of its ranks, by wire::Meeting, as of that answer.
  std::array<Duration, wire::kMeetings> waited{};
  std::uint32_t stacks_asked = 0;  // the number of the last request, where it was one for this host
  std::optional<wire::StackReply> stacks;
  std::uint32_t silence_noted = 0;  // the last wire::Silence that its agent has noted

  bool is_there() const { return link && !lost && !empty; }
};

struct RankState {
  std::uint32_t pid = 0;
  bool ended = false;
  int open_streams = 0;
  wire::StepTimes step_times{};  // that it had told when it ended
};

// Wakes every coroutine that waits for the job's state to change.
class Change {
 public:
  explicit Change(boost::asio::any_io_executor executor) : executor_(std::move(executor)) {}
  void notify() {
    for (boost::asio::steady_timer* timer : waiting_) timer->cancel();
  }
  boost::asio::awaitable<void> wait(TimePoint deadline);

 private:
  boost::asio::any_io_executor executor_;
  std::list<boost::asio::steady_timer*> waiting_;  // each in its waiter's frame
};

// Why a job is to end before its ranks do.
struct StopRequest {
  enum class Kind {
    kSignal,
    kTimeout,
    kStalled,
    kTwoMpis,
    kOutputClosed,
    kOutputFailed
  } kind = Kind::kSignal;
  int signal = 0;
  std::string what;         // kStalled, kTwoMpis, kOutputFailed
  std::string advice = {};  // kStalled, kTwoMpis

  // Whoever wants it asks where the ranks stand.
  bool wants_stacks() const {
    return kind == Kind::kTimeout || kind == Kind::kStalled ||
           (kind == Kind::kSignal && signal == SIGQUIT);
  }
};

struct Job {
  Job(boost::asio::any_io_executor on, JobSpec wanted)
      : spec(std::move(wanted)), executor(on), change(on) {}

  const JobSpec spec;
  boost::asio::any_io_executor executor;
  Change change;
  std::string id;
  JobKey key{};
  std::string port_range;     // the ranks' HVRUN_PORT_RANGE
  std::string interfaces;     // the ranks' HVRUN_INTERFACES
  Duration stall_limit{};     // ranks that wait so long to meet the others are told of; 0: never
  Duration stall_end{};       // ranks that wait so long for that end the job; 0: never
  bool awaits_slurm = false;  // scontrol has not answered yet
  bool slurm_signals_ranks = false;  // its result
  LaunchPlan plan;
  std::vector<HostState> hosts;
  std::vector<RankState> ranks;
  std::optional<FailurePolicy> policy;
  std::optional<FenceTable> fences;
  std::optional<StopRequest> stop;
  TimePoint stopped_at;        // when stop came
  bool ranks_may_run = false;  // Go has been sent
  TimePoint ranks_begun{};     // when it was
  bool ending = false;         // End has been sent
  bool stop_at_once = false;   // asked twice
  TimePoint begun = now();
  std::int64_t begun_wall_clock_ns = wall_clock_ns();
  RunningProcess hvrun = this_process();
  std::uint32_t queries = 0;                  // sent
  std::vector<RecordedStanding> standings{};  // of ranks, as they were told

  // The first request counts.
  void request_stop(StopRequest request);
  // done: captures nothing that has a destructor when written in the co_await itself: g++ 12
  // destroys it twice. Waits until done() or the deadline or (unless the job is past caring) a
  // request to stop.
  boost::asio::awaitable<bool> until(std::function<bool()> done, TimePoint deadline,
                                     bool heed_stop = true);
  // Asks all agents for a QueryReply. False: not all had answered by then.
  boost::asio::awaitable<bool> query(TimePoint deadline);
  template <class Message>
  void send_to_all(const Message& message) {
    for (HostState& host : hosts) {
      if (host.is_there()) host.link->send(message);
    }
  }
  // Or, given up by their agent, will never begin.
  bool ranks_ended() const;
  bool all_hosts(const std::function<bool(const HostState&)>& holds) const;
  const std::string& host_of(int rank) const {
    return hosts[static_cast<std::size_t>(plan.ranks[static_cast<std::size_t>(rank)].host)]
        .target.name;
  }
  // "rank 0 on host a, rank 1 on host b and 3 more"; "" when none runs.
  std::string running_ranks() const;
};

}  // namespace hv::launcher
