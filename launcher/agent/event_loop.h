// EventLoop: readiness of descriptors (epoll) and timers. All of the agent runs on one.
// SPDX-License-Identifier: Apache-2.0
//
// Not Asio: its descriptors become non-blocking as open files, which the agent's inherited streams
// share with other processes, and it would triple the agent's size. One thread only: PDEATHSIG of
// the ranks is tied to the thread that forked them.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>

#include "src/base/clock.h"
#include "src/base/unique_fd.h"

namespace hv::launcher {

class EventLoop {
 public:
  using OnReady = std::function<void(std::uint32_t events)>;
  using Timer = std::pair<TimePoint, std::uint64_t>;

  EventLoop();

  // Calls on_ready whenever fd is ready for events (EPOLLIN, EPOLLOUT; errors and hang-ups always
  // count). False when the kernel cannot watch that kind of file. Watching again replaces events
  // and callback.
  bool watch(int fd, std::uint32_t events, OnReady on_ready);
  // Call before fd is closed. Allowed inside any callback, and for a descriptor that is not
  // watched.
  void unwatch(int fd);

  Timer call_at(TimePoint when, std::function<void()> act);
  Timer call_after(Duration delay, std::function<void()> act) {
    return call_at(now() + delay, std::move(act));
  }
  void cancel(const Timer& timer) { timers_.erase(timer); }

  // Returns after stop().
  void run();
  void stop() { stopped_ = true; }
  // Waits for one event or timer, at most until the deadline, and handles what is ready.
  void run_once(TimePoint deadline = TimePoint::max());

 private:
  struct Watch {
    // Separates a new watch of a descriptor number from a late event of the old one.
    std::uint32_t generation;
    OnReady on_ready;
  };
  void run_timers();
  int milliseconds_to_wait(TimePoint deadline) const;

  UniqueFd epoll_;
  std::unordered_map<int, std::shared_ptr<Watch>> watches_;
  std::map<Timer, std::function<void()>> timers_;
  std::uint64_t next_timer_ = 0;
  std::uint32_t next_generation_ = 0;
  bool stopped_ = false;
};

}  // namespace hv::launcher
