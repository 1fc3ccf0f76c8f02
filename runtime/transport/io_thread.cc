// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/io_thread.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "src/base/check.h"
#include "src/base/signal_block.h"
#include "src/base/text.h"

namespace hv::runtime {

std::thread start_quiet_thread(std::function<void()> body) {
  const SignalBlock block;
  return std::thread(std::move(body));
}

Status io_trouble(const std::string& doing, const std::system_error& error) {
  const int number = error.code().value();
  if (number != EAGAIN) return system_status(doing, number);
  return {StatusCode::kSystem, doing + ": start a thread: " + errno_text(number) +
                                   "; try a higher limit on processes and threads (ulimit -u) or "
                                   "on memory (ulimit -v), or fewer ranks a host"};
}

namespace {

constexpr const char* kWatching = "watch sockets and processes of other ranks";

[[noreturn]] void fail(const char* doing) {
  throw std::system_error(errno, std::generic_category(), doing);
}

// data.ptr of an event: the flag to set, or null.
void add(int epoll, int fd, std::uint32_t events, void* pointer) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = pointer;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) fail(kWatching);
}

}  // namespace

IoThread::IoThread(std::function<void()> ring)
    : ring_(std::move(ring)),
      epoll_(UniqueFd(::epoll_create1(EPOLL_CLOEXEC))),
      wake_(UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))) {
  if (!epoll_ || !wake_) fail(kWatching);
  add(epoll_.get(), wake_.get(), EPOLLIN | EPOLLET, nullptr);
}

IoThread::~IoThread() {
  stopping_ = true;
  const std::uint64_t one = 1;
  if (thread_.joinable() && ::write(wake_.get(), &one, sizeof one) == sizeof one) thread_.join();
}

void IoThread::watch(int fd, std::atomic<bool>* happened) {
  add(epoll_.get(), fd, EPOLLIN | EPOLLRDHUP | EPOLLET, happened);
}

void IoThread::watch_when_armed(int fd) {
  armed_fd_ = fd;
  add(epoll_.get(), fd, EPOLLONESHOT, nullptr);
}

void IoThread::arm() {
  if (armed_fd_ < 0) return;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLONESHOT;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, armed_fd_, &event);
}

void IoThread::start() {
  thread_ = start_quiet_thread([this] { run(); });
}

void IoThread::set_ticking(bool on) {
  if (ticking_.exchange(on) == on || !on) return;
  const std::uint64_t one = 1;
  HV_CHECK(::write(wake_.get(), &one, sizeof one) == sizeof one, "an eventfd counts");
}

void IoThread::beat_every(std::chrono::milliseconds interval, std::atomic<bool>* due) {
  beat_ = interval;
  beat_due_ = due;
}

int IoThread::time_to_next() const {
  const int tick = ticking_ ? 100 : -1;
  if (beat_.count() == 0) return tick;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next_beat_ - now()).count();
  const int beat = static_cast<int>(std::max<std::int64_t>(left, 0));
  return tick < 0 ? beat : std::min(tick, beat);
}

void IoThread::run() {
  epoll_event events[16];
  next_beat_ = now() + beat_;
  while (!stopping_) {
    const int count = ::epoll_wait(epoll_.get(), events, 16, time_to_next());
    if (count < 0 && errno != EINTR) return;
    if (beat_.count() > 0 && now() >= next_beat_) {
      *beat_due_ = true;
      next_beat_ = now() + beat_;
    }
    for (int i = 0; i < count; ++i)
      if (auto* happened = static_cast<std::atomic<bool>*>(events[i].data.ptr)) *happened = true;
    ring_();
  }
}

}  // namespace hv::runtime
