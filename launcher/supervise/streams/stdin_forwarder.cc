// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/streams/stdin_forwarder.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <optional>
#include <thread>

#include "src/process/signals.h"

namespace hv::launcher {

struct StdinForwarder::Shared {
  std::mutex mutex;  // guards window, abandoned and stopped
  std::condition_variable changed;
  std::size_t window = 0;
  bool abandoned = false;
  std::optional<bool> stopped;  // what came of the SIGTTIN that is waited for
  StdinCallbacks callbacks;

  ssize_t read_input(char* buffer, std::size_t size);
  // How much may be read now; 0: nobody wants it any more.
  std::size_t wait_for_window() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return window > 0 || abandoned; });
    return abandoned ? 0 : window;
  }
  void hand_on(std::string bytes) {
    const std::lock_guard lock(mutex);
    if (abandoned) return;
    window -= std::min(window, bytes.size());
    callbacks.deliver(std::move(bytes));
  }
  void fail(int error) {
    const std::lock_guard lock(mutex);
    if (!abandoned) callbacks.on_error(error);
  }
  // True once hvrun has been stopped and goes on.
  bool stop_process_group() {
    std::unique_lock lock(mutex);
    if (abandoned) return false;
    stopped.reset();
    ::kill(0, SIGTTIN);
    changed.wait(lock, [this] { return stopped.has_value() || abandoned; });
    return stopped.value_or(false);
  }
};

namespace {

// After EIO, which a terminal that is gone says, too.
bool terminal_is_anothers() {
  const pid_t owner = ::tcgetpgrp(0);
  return owner >= 0 && owner != ::getpgrp() && !is_ignored(SIGTTIN);
}

// Others may have made it non-blocking.
void await_input() {
  pollfd input{0, POLLIN, 0};
  ::poll(&input, 1, -1);
}

}  // namespace

// As ::read.
ssize_t StdinForwarder::Shared::read_input(char* buffer, std::size_t size) {
  for (;;) {
    const ssize_t got = ::read(0, buffer, size);
    if (got >= 0) return got;
    const int error = errno;
    if (error == EINTR) continue;
    if (error == EAGAIN) {
      await_input();
      continue;
    }
    if (error == EIO && terminal_is_anothers() && stop_process_group()) continue;
    fail(error);
    return -1;
  }
}

StdinForwarder::StdinForwarder(std::size_t window, StdinCallbacks callbacks)
    : shared_(std::make_shared<Shared>()) {
  shared_->window = window;
  shared_->callbacks = std::move(callbacks);
  const SignalBlock block;  // inherited: signals go to the io thread
  std::thread([shared = shared_] {
    char buffer[65536];
    while (const std::size_t room = shared->wait_for_window()) {
      const ssize_t got = shared->read_input(buffer, std::min(room, sizeof buffer));
      if (got <= 0) break;
      shared->hand_on(std::string(buffer, static_cast<std::size_t>(got)));
    }
    shared->hand_on({});
  }).detach();
}

StdinForwarder::~StdinForwarder() {
  const std::lock_guard lock(shared_->mutex);
  shared_->abandoned = true;
  shared_->changed.notify_all();
}

void StdinForwarder::has_been_stopped(bool stopped) {
  const std::lock_guard lock(shared_->mutex);
  shared_->stopped = stopped;
  shared_->changed.notify_all();
}

void StdinForwarder::accepted(std::uint32_t bytes) {
  const std::lock_guard lock(shared_->mutex);
  shared_->window += bytes;
  shared_->changed.notify_all();
}

}  // namespace hv::launcher
