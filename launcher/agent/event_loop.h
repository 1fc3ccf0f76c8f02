// The agent's one loop: readiness of descriptors (epoll) and timers. Everything in the agent runs
// on it.
// SPDX-License-Identifier: Apache-2.0
//
// Not Asio: its descriptors become non-blocking as open files, which the agent's inherited streams
// share with others, and the agent stays a third of the size. One thread only: PDEATHSIG of the
// ranks is tied to the thread that forked them.
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
  // Must come before fd is closed. Fine inside any callback, and for what is not watched.
  void unwatch(int fd);

  Timer call_at(TimePoint when, std::function<void()> act);
  Timer call_after(Duration delay, std::function<void()> act) {
    return call_at(now() + delay, std::move(act));
  }
  void cancel(const Timer& timer) { timers_.erase(timer); }

  // Until stop().
  void run();
  void stop() { stopped_ = true; }
  // Waits for one event or timer and handles what is ready; not beyond the deadline.
  void run_once(TimePoint deadline = TimePoint::max());

 private:
  struct Watch {
    std::uint32_t
        generation;  // tells a new watch of a descriptor number from an old one's late event
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
