// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/event_loop.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "src/base/check.h"
#include "src/base/text.h"

namespace hv::launcher {

EventLoop::EventLoop() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  HV_CHECK(epoll_, "epoll_create1: " + errno_text(errno));
}

bool EventLoop::watch(int fd, std::uint32_t events, OnReady on_ready) {
  const std::uint32_t generation = ++next_generation_;
  epoll_event event{};
  event.events = events;
  event.data.u64 = std::uint64_t{generation} << 32 | static_cast<std::uint32_t>(fd);
  const int action = watches_.count(fd) ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  if (::epoll_ctl(epoll_.get(), action, fd, &event) != 0) return false;
  watches_[fd] = std::make_shared<Watch>(Watch{generation, std::move(on_ready)});
  return true;
}

void EventLoop::unwatch(int fd) {
  if (watches_.erase(fd) == 0) return;
  HV_CHECK(::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr) == 0,
           "unwatch before close: " + errno_text(errno));
}

EventLoop::Timer EventLoop::call_at(TimePoint when, std::function<void()> act) {
  // Never before a timer that is due already: a timer that is set for "at once" again and again
  // starves no other.
  const Timer timer{std::max(when, now()), ++next_timer_};
  timers_.emplace(timer, std::move(act));
  return timer;
}

void EventLoop::run_timers() {
  const TimePoint time = now();
  // A timer that its own callback sets again for now waits for the next round.
  const std::uint64_t newest = next_timer_;
  while (!timers_.empty() && !stopped_) {
    const auto first = timers_.begin();
    if (first->first.first > time || first->first.second > newest) return;
    const std::function<void()> act = std::move(first->second);
    timers_.erase(first);
    act();
  }
}

int EventLoop::milliseconds_to_wait(TimePoint deadline) const {
  if (!timers_.empty()) deadline = std::min(deadline, timers_.begin()->first.first);
  if (deadline == TimePoint::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, 1 << 30));
}

void EventLoop::run_once(TimePoint deadline) {
  std::array<epoll_event, 64> ready;
  const int count = ::epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()),
                                 milliseconds_to_wait(deadline));
  for (int i = 0; i < count && !stopped_; ++i) {
    const epoll_event& event = ready[static_cast<std::size_t>(i)];
    const auto found = watches_.find(static_cast<int>(event.data.u64 & 0xffffffff));
    if (found == watches_.end() || found->second->generation != event.data.u64 >> 32) continue;
    const std::shared_ptr<Watch> watch = found->second;  // the callback may unwatch itself
    watch->on_ready(event.events);
  }
  run_timers();
}

void EventLoop::run() {
  while (!stopped_) run_once();
}

}  // namespace hv::launcher
