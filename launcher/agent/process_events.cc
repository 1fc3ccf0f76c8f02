// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/process_events.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "src/base/check.h"
#include "src/base/text.h"

namespace hv::launcher {

ProcessEvents::ProcessEvents(EventLoop& loop, UniqueFd guard, ProcessEventCallbacks callbacks)
    : loop_(loop), guard_(std::move(guard)), callbacks_(std::move(callbacks)) {
  watch_signals();
  loop_.watch(guard_.get(), EPOLLIN, [this](std::uint32_t) {
    loop_.unwatch(guard_.get());
    callbacks_.on_guard_ended();
  });
}

ProcessEvents::~ProcessEvents() {
  loop_.unwatch(signals_.get());
  loop_.unwatch(guard_.get());
}

void ProcessEvents::watch_signals() {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2})
    sigaddset(&watched, number);
  signals_.reset(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  HV_CHECK(signals_, "signalfd: " + errno_text(errno));
  loop_.watch(signals_.get(), EPOLLIN, [this](std::uint32_t) { read_signals(); });
}

void ProcessEvents::read_signals() {
  signalfd_siginfo info{};
  bool has_child_ended = false;
  while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const int number = static_cast<int>(info.ssi_signo);
    if (number == SIGCHLD) {
      has_child_ended = true;
    } else {
      callbacks_.on_signal(number);
    }
  }
  if (has_child_ended) callbacks_.on_children_ended();
}

}  // namespace hv::launcher
