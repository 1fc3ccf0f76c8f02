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
  std::mutex mutex;  // guards window, is_abandoned and was_stopped
  std::condition_variable changed;
  std::size_t window = 0;
  bool is_abandoned = false;
  std::optional<bool> was_stopped;  // by the last SIGTTIN; none: not handled yet
  StdinCallbacks callbacks;

  ssize_t read_input(char* buffer, std::size_t size);
  // Bytes that may be read now; 0: no more input is needed.
  std::size_t wait_for_window() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return window > 0 || is_abandoned; });
    return is_abandoned ? 0 : window;
  }
  void deliver(std::string bytes) {
    const std::lock_guard lock(mutex);
    if (is_abandoned) return;
    window -= std::min(window, bytes.size());
    callbacks.deliver(std::move(bytes));
  }
  void fail(int error) {
    const std::lock_guard lock(mutex);
    if (!is_abandoned) callbacks.on_error(error);
  }
  // True: hvrun was stopped, and continues.
  bool stop_process_group() {
    std::unique_lock lock(mutex);
    if (is_abandoned) return false;
    was_stopped.reset();
    ::kill(0, SIGTTIN);
    changed.wait(lock, [this] { return was_stopped.has_value() || is_abandoned; });
    return was_stopped.value_or(false);
  }
};

namespace {

// Tells a background read from a terminal that has gone: both fail with EIO.
bool is_in_background() {
  const pid_t owner = ::tcgetpgrp(0);
  return owner >= 0 && owner != ::getpgrp() && !is_ignored(SIGTTIN);
}

// Another process may have made standard input non-blocking.
void await_input() {
  pollfd input{0, POLLIN, 0};
  ::poll(&input, 1, -1);
}

}  // namespace

// Returns like ::read.
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
    if (error == EIO && is_in_background() && stop_process_group()) continue;
    fail(error);
    return -1;
  }
}

StdinForwarder::StdinForwarder(std::size_t window, StdinCallbacks callbacks)
    : shared_(std::make_shared<Shared>()) {
  shared_->window = window;
  shared_->callbacks = std::move(callbacks);
  const SignalBlock block;  // inherited by the thread: the io_context thread gets the signals
  std::thread([shared = shared_] {
    char buffer[65536];
    while (const std::size_t allowed = shared->wait_for_window()) {
      const ssize_t got = shared->read_input(buffer, std::min(allowed, sizeof buffer));
      if (got <= 0) break;
      shared->deliver(std::string(buffer, static_cast<std::size_t>(got)));
    }
    shared->deliver({});
  }).detach();
}

StdinForwarder::~StdinForwarder() {
  const std::lock_guard lock(shared_->mutex);
  shared_->is_abandoned = true;
  shared_->changed.notify_all();
}

void StdinForwarder::continue_after_stop(bool was_stopped) {
  const std::lock_guard lock(shared_->mutex);
  shared_->was_stopped = was_stopped;
  shared_->changed.notify_all();
}

void StdinForwarder::add_window(std::uint32_t bytes) {
  const std::lock_guard lock(shared_->mutex);
  shared_->window += bytes;
  shared_->changed.notify_all();
}

}  // namespace hv::launcher
