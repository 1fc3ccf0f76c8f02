// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/stdin_forwarder.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "src/process/signals.h"

namespace hv::launcher {

struct StdinForwarder::Shared {
  std::mutex mutex;  // guards window and abandoned
  std::condition_variable changed;
  std::size_t window = 0;
  bool abandoned = false;
  std::function<void(std::string)> deliver;

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
    deliver(std::move(bytes));
  }
};

namespace {

ssize_t read_input(char* buffer, std::size_t size) {
  ssize_t got = 0;
  do {
    got = ::read(0, buffer, size);
  } while (got < 0 && errno == EINTR);
  return got;
}

}  // namespace

StdinForwarder::StdinForwarder(std::size_t window, std::function<void(std::string)> deliver)
    : shared_(std::make_shared<Shared>()) {
  shared_->window = window;
  shared_->deliver = std::move(deliver);
  const SignalBlock block;  // inherited: signals go to the io thread
  std::thread([shared = shared_] {
    char buffer[65536];
    while (const std::size_t room = shared->wait_for_window()) {
      const ssize_t got = read_input(buffer, std::min(room, sizeof buffer));
      if (got <= 0) break;
      shared->hand_on(std::string(buffer, static_cast<std::size_t>(got)));
    }
    shared->hand_on(
        {});  // an unreadable input (closed, or a terminal of a background job) is an empty one
  }).detach();
}

StdinForwarder::~StdinForwarder() {
  const std::lock_guard lock(shared_->mutex);
  shared_->abandoned = true;
  shared_->changed.notify_all();
}

void StdinForwarder::accepted(std::uint32_t bytes) {
  const std::lock_guard lock(shared_->mutex);
  shared_->window += bytes;
  shared_->changed.notify_all();
}

}  // namespace hv::launcher
