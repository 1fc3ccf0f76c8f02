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

#include "launcher/plan/launch_plan.h"
#include "launcher/record/job_record.h"
#include "launcher/supervise/failure_policy.h"
#include "launcher/supervise/fence_table.h"
#include "launcher/supervise/hosts/host.h"
#include "launcher/supervise/slot_table.h"
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
    kTwoMpis,
    kOutputClosed,
    kOutputFailed
  } kind = Kind::kSignal;
  int signal = 0;
  std::string text{};    // kStalled, kTwoMpis, kOutputFailed
  std::string advice{};  // kStalled, kTwoMpis
  TimePoint at{};        // set by Job::request_stop
  bool at_once = false;  // the user has asked twice

  // The stacks of the ranks are reported before the end.
  bool wants_stacks() const {
    return kind == Kind::kTimeout || kind == Kind::kStalled ||
           (kind == Kind::kSignal && signal == SIGQUIT);
  }
};

// What distinguishes this job from all others.
struct JobIdentity {
  std::string id{};
  JobKey key{};
  RunningProcess hvrun = this_process();
  TimePoint begun = now();
  std::int64_t begun_wall_clock_ns = wall_clock_ns();
};

// Knobs of the ranks that hvrun applies, too.
struct RankKnobs {
  std::string port_range{};  // HVRUN_PORT_RANGE
  std::string interfaces{};  // HVRUN_INTERFACES
  Duration stall_limit{};    // ranks that wait longer for the others are reported; 0: never
  Duration stall_end{};      // ranks that wait longer for the others end the job; 0: never
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

class Job {
 public:
  Job(boost::asio::any_io_executor on, JobSpec requested)
      : spec(std::move(requested)), executor(on), change(on) {}

  const JobSpec spec;
  const boost::asio::any_io_executor executor;
  Change change;
  JobIdentity identity;                       // the launch sequence sets id and key
  RankKnobs knobs;                            // set before the launch
  HostTable hosts;                            // the launch sequence and EventRouter
  SlotTable slots;                            // EventRouter, from the plan on
  std::optional<FailurePolicy> policy;        // EventRouter, from the plan on
  std::optional<FenceTable> fences;           // EventRouter, from the plan on
  JobStage stage;                             // the launch sequence and Shutdown
  std::vector<RecordedStanding> standings{};  // StackInquiry

  Host& add_host(HostTarget target);
  // Sets the plan, which is constant from then on, and makes the slots, the first epoch, the
  // failure policy and the fences. Hosts without ranks are let go.
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
  bool stops_at_once() const { return stop_ && stop_->at_once; }
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
  // "rank 0 on host a, rank 1 on host b and 3 more"; "" when none runs.
  std::string running_ranks() const;

 private:
  LaunchPlan plan_;
  std::optional<StopReason> stop_;
  std::uint32_t queries_ = 0;  // sent
};

}  // namespace hv::launcher
