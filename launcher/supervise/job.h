// Job: the state of a job that hvrun launches or runs: what is constant, its hosts, its slots, and
// why it has to stop. io_context thread only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <functional>
#include <list>
#include <optional>
#include <ranges>
#include <string>
#include <vector>

#include "launcher/plan/grace.h"
#include "launcher/plan/launch_plan.h"
#include "launcher/record/job_record.h"
#include "launcher/supervise/failure_policy.h"
#include "launcher/supervise/fence_table.h"
#include "launcher/supervise/hosts/host.h"
#include "launcher/supervise/slot_table.h"
#include "launcher/supervise/timeouts.h"
#include "src/wire/messages.h"

namespace hv::launcher {

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

// Why a job has to end before its ranks do.
struct StopReason {
  enum class Kind {
    kSignal,
    kTimeout,
    kStalled,
    kCannotStart,  // the ranks run, but can never start to work together
    kOutputClosed,
    kOutputFailed
  } kind = Kind::kSignal;
  int signal = 0;
  std::string text{};    // kStalled, kCannotStart, kOutputFailed
  std::string advice{};  // kStalled, kCannotStart; of kOutputFailed where not the usual
  TimePoint at{};        // set by Job::request_stop
  bool at_once = false;  // the user has asked twice

  // Slurm sends SIGTERM twice to a step at its time limit, and so does timeout(1) to its program:
  // then no user has asked twice.
  bool is_repeated_by(int other, TimePoint when) const {
    return kind == Kind::kSignal && signal == SIGTERM && other == SIGTERM &&
           when - at < kSigtermRepeatTime;
  }
  // The stacks of the ranks are reported before the end.
  bool wants_stacks() const {
    return kind == Kind::kTimeout || kind == Kind::kStalled ||
           (kind == Kind::kSignal && signal == SIGQUIT);
  }
};

// Distinguishes this attempt of this job from all others.
struct JobIdentity {
  std::string id{};
  JobKey key{};
  RunningProcess hvrun = this_process();
  TimePoint begun = now();
  std::int64_t begun_wall_clock_ns = wall_clock_ns();
  int restarts = 0;               // before this attempt
  TimePoint first_begun = begun;  // when the first attempt began
};

// Knobs of the ranks that hvrun applies, too.
struct RankKnobs {
  std::string port_range{};  // HVRUN_PORT_RANGE
  std::string interfaces{};  // HVRUN_INTERFACES
  Duration stall_limit{};    // ranks that wait longer for the others are reported; 0: never
  Duration stall_end{};      // ranks that wait longer for the others end the job; 0: never
  // The same of a call of torch.distributed, which has a time limit of its own. Only where the user
  // has set HVRUN_STALL_SHUTDOWN_SECONDS.
  Duration call_end{};
};

// launching -> ranks may run -> ending; a launch that fails ends at once.
class JobStage {
 public:
  // Go has been sent.
  void begin_ranks() { ranks_begun_ = now(); }
  // End has been sent.
  void begin_end() { is_ending_ = true; }
  bool may_ranks_run() const { return ranks_begun_.has_value(); }
  TimePoint ranks_begun() const { return ranks_begun_.value_or(TimePoint()); }
  bool is_ending() const { return is_ending_; }

 private:
  std::optional<TimePoint> ranks_begun_;
  bool is_ending_ = false;
};

// What is known of the signals that hvrun gets.
struct JobSignals {
  std::optional<int> forwarded{};         // the last SIGUSR1 or SIGUSR2, also of an agent
  bool is_slurm_ending = false;           // an agent in a Slurm step has got SIGTERM
  std::optional<Duration> time_to_end{};  // between the scheduler's SIGTERM and its SIGKILL
};

class Job {
 public:
  Job(boost::asio::any_io_executor on, JobSpec requested)
      : spec(std::move(requested)), executor(on), change(on) {}

  const JobSpec spec;
  const boost::asio::any_io_executor executor;
  Change change;
  JobIdentity identity;                       // the launch sequence sets id and key
  RankKnobs knobs;                            // set before the first host is connected
  HostTable hosts;                            // docs/architecture.md lists who changes what
  SlotTable slots;                            // EventRouter; the launch sequence opens streams
  std::optional<FailurePolicy> policy;        // EventRouter and watch_ranks, from the plan on
  std::optional<FenceTable> fences;           // EventRouter, from the plan on
  JobStage stage;                             // the launch sequence and Shutdown
  JobSignals signals{};                       // SignalWatch, EventRouter, SlurmQuery, pod_query
  std::vector<RecordedStanding> standings{};  // StackInquiry

  Host& add_host(HostTarget target);
  // Sets the plan, which is constant from then on, and makes the slots, the first epoch, the
  // failure policy and the fences. Drops the links of hosts without ranks.
  void begin_epoch(LaunchPlan plan);
  const LaunchPlan& plan() const { return plan_; }
  // The hosts of the present epoch, in its order; before there is a plan: all.
  auto members() {
    return slots.epoch().hosts |
           std::views::transform([this](HostId id) -> Host& { return hosts.at(id); });
  }
  auto members() const {
    return slots.epoch().hosts |
           std::views::transform([this](HostId id) -> const Host& { return hosts.at(id); });
  }
  Host& host_of(int rank) { return hosts.at(slots.of_rank(rank).host); }
  const Host& host_of(int rank) const { return hosts.at(slots.of_rank(rank).host); }

  const std::optional<StopReason>& stop() const { return stop_; }
  // SIGTERM, where a scheduler is known to send it.
  bool is_stopped_by_scheduler() const {
    return stop_ && stop_->kind == StopReason::Kind::kSignal && stop_->signal == SIGTERM;
  }
  bool stops_at_once() const { return stop_ && stop_->at_once; }
  // That ranks have between SIGTERM and SIGKILL, in an end by this.
  Duration grace(EndedBy by) const { return grace_of(by, spec.ending.grace, signals.time_to_end); }
  // The first reason counts.
  void request_stop(StopReason reason);
  void request_stop_at_once();

  // done: captures nothing that has a destructor when written in the co_await itself: g++ 12
  // destroys it twice. Waits until done() or the deadline or, with heed_stop, a request to stop.
  boost::asio::awaitable<bool> until(std::function<bool()> done, TimePoint deadline,
                                     bool heed_stop = true);
  // Asks all agents for a QueryReply. False: not all had answered by then.
  boost::asio::awaitable<bool> query(TimePoint deadline);
  template <class Message>
  void send_to_all(const Message& message) {
    for (const Host& host : members()) host.send(message);
  }
  bool all_hosts(const std::function<bool(const Host&)>& holds) const;
  // A rank whose agent has given up starting it counts as ended.
  bool have_ranks_ended() const;
  // "rank 0 on host a", "ranks 0-7 on hosts n[1-4]"; "" when none runs.
  std::string running_ranks() const;

 private:
  LaunchPlan plan_;
  std::optional<StopReason> stop_;
  std::uint32_t queries_ = 0;  // sent
};

}  // namespace hv::launcher
