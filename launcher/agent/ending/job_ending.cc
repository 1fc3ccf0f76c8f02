// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/ending/job_ending.h"

#include <csignal>
#include <utility>

namespace hv::launcher {
namespace {

// A pass reads all of /proc: frequent at first, when most processes end, then rare.
constexpr auto kQuickPasses = std::chrono::milliseconds(200);
constexpr auto kQuick = std::chrono::milliseconds(5);
constexpr auto kSlow = std::chrono::milliseconds(50);

}  // namespace

JobEnding::JobEnding(EventLoop& loop, LocalRanks& ranks, std::function<void()> on_over)
    : loop_(loop), ranks_(ranks), on_over_(std::move(on_over)) {}

JobEnding::~JobEnding() {
  if (timer_) loop_.cancel(*timer_);
}

void JobEnding::set_timer(TimePoint when, std::function<void()> act) {
  if (timer_) loop_.cancel(*timer_);
  timer_ = loop_.call_at(when, [this, act = std::move(act)] {
    timer_.reset();
    act();
  });
}

void JobEnding::pause(bool is_stopped) {
  if (begun_) return;
  if (is_stopped) {
    ranks_.hold_start();
    pause_.stop();
  } else {
    pause_.go_on();
    ranks_.go_on_with_start();
  }
}

void JobEnding::begin(Duration grace) {
  const TimePoint kill_at = now() + grace;
  if (over_ || hunt_ || (begun_ && kill_at >= kill_at_)) return;
  kill_at_ = kill_at;
  const bool at_once = grace <= Duration::zero();
  if (!std::exchange(begun_, true) && !at_once) terminate();
  if (at_once) return kill();
  set_timer(kill_at_, [this] { kill(); });
}

void JobEnding::terminate() {
  ranks_.note_signal(SIGTERM);
  signal_descendants(SIGTERM, ranks_.groups());
  pause_.go_on();  // a stopped process would handle SIGTERM only later
}

void JobEnding::kill() {
  ranks_.note_signal(SIGKILL);
  if (cgroup_) cgroup_->kill();
  hunt_.emplace();
  killing_since_ = now();
  hunt_on();
}

void JobEnding::hunt_on() {
  if (over_) return;
  if (!hunt_->step()) {
    const Duration pause = now() - killing_since_ < kQuickPasses ? kQuick : kSlow;
    return set_timer(now() + pause, [this] { hunt_on(); });
  }
  stuck_ = hunt_->stuck();
  forbidden_ = hunt_->forbidden();
  over_ = true;
  on_over_();
}

void JobEnding::note_nothing_left() {
  if (!begun_ || std::exchange(over_, true)) return;
  if (timer_) loop_.cancel(*std::exchange(timer_, std::nullopt));
  on_over_();
}

}  // namespace hv::launcher
