// ProcessEvents: an agent's events of its own host: signals, ended children, the end of its guard.
// SPDX-License-Identifier: Apache-2.0
//
// Signals come through a descriptor (signalfd) of the event loop; all of them must be blocked in
// this process.
#pragma once

#include <functional>

#include "launcher/agent/event_loop.h"
#include "src/base/unique_fd.h"

namespace hv::launcher {

struct ProcessEventCallbacks {
  std::function<void()> on_children_ended;  // SIGCHLD, once for any number of them
  std::function<void(int)> on_signal;       // SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2
  std::function<void()> on_guard_ended;     // once
};

class ProcessEvents {
 public:
  // guard: readable once the guard is gone.
  ProcessEvents(EventLoop& loop, UniqueFd guard, ProcessEventCallbacks callbacks);
  ~ProcessEvents();
  ProcessEvents(const ProcessEvents&) = delete;
  ProcessEvents& operator=(const ProcessEvents&) = delete;

 private:
  void watch_signals();
  void read_signals();

  EventLoop& loop_;
  UniqueFd guard_;
  const ProcessEventCallbacks callbacks_;
  UniqueFd signals_;
};

}  // namespace hv::launcher
