// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/ending/job_ending.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <set>
#include <utility>

#include "launcher/agent/ranks/signal_targets.h"
#include "launcher/facts/process_table.h"

namespace hv::launcher {
namespace {

// A pass reads all of /proc: frequent at first, when most processes end, then rare.
constexpr auto kQuickPasses = std::chrono::milliseconds(200);
constexpr auto kQuick = std::chrono::milliseconds(5);
constexpr auto kSlow = std::chrono::milliseconds(50);

// Slurm's daemons on the nodes signal a step at almost the same time.
constexpr auto kMostExpectation = std::chrono::seconds(2);

constexpr auto kProgramInterval = std::chrono::milliseconds(100);

std::vector<ProcessEntry> entries_of(const std::vector<pid_t>& pids,
                                     const std::vector<ProcessEntry>& all) {
  std::vector<ProcessEntry> entries;
  for (const ProcessEntry& process : all)
    if (std::find(pids.begin(), pids.end(), process.pid) != pids.end()) entries.push_back(process);
  return entries;
}

bool still_runs(const ProcessEntry& process) {
  const auto current = read_process(process.pid);
  return current && current->start_time == process.start_time && !current->is_zombie();
}

}  // namespace

JobEnding::JobEnding(EventLoop& loop, HvrunLink& link, LocalRanks& ranks,
                     std::function<void()> on_over)
    : loop_(loop), link_(link), ranks_(ranks), on_over_(std::move(on_over)) {}

JobEnding::~JobEnding() {
  if (timer_) loop_.cancel(*timer_);
  if (program_timer_) loop_.cancel(*program_timer_);
}

void JobEnding::set_timer(TimePoint when, std::function<void()> act) {
  if (timer_) loop_.cancel(*timer_);
  timer_ = loop_.call_at(when, [this, act = std::move(act)] {
    timer_.reset();
    act();
  });
}

void JobEnding::pause(bool is_stopped) {
  if (state_ != State::kIdle) return;
  if (is_stopped) {
    ranks_.hold_start();
    pause_.stop();
  } else {
    pause_.go_on();
    ranks_.go_on_with_start();
  }
}

void JobEnding::begin(Duration grace, Sigterm sigterm) {
  if (state_ == State::kKilling || state_ == State::kOver) return;
  if (grace <= Duration::zero()) return kill();
  const TimePoint at = now();
  if (state_ == State::kIdle) {
    begun_ = at;
  } else if (at + grace >= grace_end_) {
    return;
  }
  grace_end_ = at + grace;
  if (state_ == State::kIdle && sigterm == Sigterm::kExpected && grace > kMostExpectation) {
    state_ = State::kExpecting;
    ranks_.note_signal(SIGTERM);  // a rank may end by it before this agent gets its own
    set_timer(at + kMostExpectation, [this] { end_expectation(Sigterm::kToSend); });
  } else if (state_ == State::kIdle || state_ == State::kExpecting) {
    terminate(sigterm == Sigterm::kSent ? Sigterm::kSent : Sigterm::kToSend);
  } else {
    set_timer(grace_end_, [this] { end_grace(); });
  }
}

void JobEnding::note_sigterm() {
  if (state_ == State::kExpecting) end_expectation(Sigterm::kSent);
}

// The grace counts from SIGTERM on.
void JobEnding::end_expectation(Sigterm sigterm) {
  const TimePoint at = now();
  grace_end_ += at - begun_;
  begun_ = at;
  terminate(sigterm);
}

void JobEnding::lengthen(Duration grace) {
  if (state_ != State::kTerminating || begun_ + grace <= grace_end_) return;
  grace_end_ = begun_ + grace;
  set_timer(grace_end_, [this] { end_grace(); });
}

void JobEnding::terminate(Sigterm sigterm) {
  state_ = State::kTerminating;
  set_timer(grace_end_, [this] { end_grace(); });
  ranks_.note_signal(SIGTERM);
  const std::vector<ProcessEntry> all = read_processes();
  const std::vector<ProcessEntry> own = descendants(all, {::getpid()});
  const std::vector<SignalTargets> targets = find_signal_targets(all, ranks_.running(), SIGTERM);
  if (sigterm == Sigterm::kToSend)
    send_signal(targets, SIGTERM, link_);
  else
    leftovers_.note_signalled(own);
  for (const SignalTargets& each : targets) {
    RankProcess* const rank = ranks_.by_pid(each.rank);
    const bool has_program = sigterm == Sigterm::kToSend && each.are_descendants();
    const std::vector<ProcessEntry> program =
        has_program ? entries_of(each.pids, all) : std::vector<ProcessEntry>();
    leftovers_.note_signalled(program);
    if (rank) rank->ending.begin(each.use, program);
  }
  note_ended_ranks();
  terminate_leftovers(own, now() + Leftovers::kLeastGrace);
  pause_.go_on();  // a stopped process would handle SIGTERM only later
  watch_programs();
}

// True: a rank has ended since the last call.
bool JobEnding::note_ended_ranks() {
  bool has_any_ended = false;
  for (const auto& rank : ranks_.all())
    if (!rank->is_running() && rank->ending.end()) has_any_ended = true;
  return has_any_ended;
}

void JobEnding::terminate_leftovers(const std::vector<ProcessEntry>& own, TimePoint until) {
  std::vector<Leftovers::Rank> ranks;
  for (const auto& rank : ranks_.all())
    ranks.push_back({rank->rank, rank->pid, rank->is_running()});
  for (const pid_t pid : leftovers_.take(own, ranks, environment_of, until)) ::kill(pid, SIGTERM);
}

void JobEnding::note_children_ended() {
  if (state_ == State::kTerminating && note_ended_ranks())
    terminate_leftovers(own_descendants(), now() + Leftovers::kLeastGrace);
}

// The end of a program in a wrapper is no event of the agent: it is not its child.
void JobEnding::watch_programs() {
  if (state_ != State::kTerminating) return;
  bool is_any_awaited = false;
  for (const auto& rank : ranks_.all()) {
    if (!rank->is_running()) continue;
    if (rank->ending.advance(now(), still_runs)) ::kill(rank->pid, SIGTERM);
    is_any_awaited = is_any_awaited || rank->ending.awaits_program();
  }
  if (is_any_awaited)
    program_timer_ = loop_.call_after(kProgramInterval, [this] {
      program_timer_.reset();
      watch_programs();
    });
}

void JobEnding::end_grace() {
  for (const auto& rank : ranks_.all())
    if (rank->is_running()) rank->ending.note_kill(grace_end_ - begun_);
  const std::vector<ProcessEntry> own = own_descendants();
  TimePoint last;
  const std::set<pid_t> spared = leftovers_.spared(own, now(), &last);
  if (spared.empty()) return kill();
  state_ = State::kSparing;
  ranks_.note_signal(SIGKILL);
  for (const ProcessEntry& process : own)
    if (!spared.contains(process.pid)) ::kill(process.pid, SIGKILL);
  set_timer(last, [this] { kill(); });
}

void JobEnding::kill() {
  state_ = State::kKilling;
  ranks_.note_signal(SIGKILL);
  if (cgroup_) cgroup_->kill();
  hunt_.emplace();
  killing_since_ = now();
  continue_hunt();
}

void JobEnding::continue_hunt() {
  if (hunt_->step()) return finish();
  const Duration pause = now() - killing_since_ < kQuickPasses ? kQuick : kSlow;
  set_timer(now() + pause, [this] { continue_hunt(); });
}

void JobEnding::note_nothing_left() {
  if (state_ == State::kIdle || state_ == State::kOver) return;
  hunt_.reset();
  finish();
}

void JobEnding::finish() {
  state_ = State::kOver;
  if (timer_) loop_.cancel(*std::exchange(timer_, std::nullopt));
  on_over_();
}

std::vector<std::string> JobEnding::stuck() const {
  return hunt_ ? hunt_->stuck() : std::vector<std::string>();
}

std::vector<std::string> JobEnding::forbidden() const {
  return hunt_ ? hunt_->forbidden() : std::vector<std::string>();
}

}  // namespace hv::launcher
