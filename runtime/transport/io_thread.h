// The I/O thread: sleeps in epoll for all who sleep at this rank's doorbell, and rings that when
// something has happened.
// SPDX-License-Identifier: Apache-2.0
//
// It moves no bytes itself: whoever drives the runtime does, woken by the bell. Descriptors are
// watched edge-triggered, so an event nobody has looked at yet does not keep the thread busy. It
// blocks all signals.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <system_error>
#include <thread>

#include "src/base/clock.h"
#include "src/base/fork_guarded_fd.h"
#include "src/base/status.h"

namespace hv::runtime {

class IoThread {
 public:
  // ring is called in the I/O thread; it must be safe there and cheap.
  // Throws std::system_error where the system gives no descriptors; so do watch() and start().
  explicit IoThread(std::function<void()> ring);
  ~IoThread();
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  // Rings at each change of fd; happened, if given, is set first. Before start() only.
  void watch(int fd, std::atomic<bool>* happened);
  // As watch(), but silent until arm() and again after each event: for what a driver polls itself
  // while awake.
  void watch_when_armed(int fd);
  void arm();
  void start();
  // Rings every 100 ms as long as it is on: for what must be noticed by time alone.
  void set_ticking(bool on);
  // Rings at every interval from start() on; due is set first. Before start() only. However late a
  // beat comes (this process was stopped), there is one, not as many as were missed.
  void beat_every(std::chrono::milliseconds interval, std::atomic<bool>* due);

 private:
  void run();
  int time_to_next() const;  // in ms; -1: for ever

  std::function<void()> ring_;
  ForkGuardedFd epoll_;
  ForkGuardedFd wake_;
  int armed_fd_ = -1;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> ticking_{false};
  std::chrono::milliseconds beat_{0};  // zero: none
  std::atomic<bool>* beat_due_ = nullptr;
  TimePoint next_beat_{};
  std::thread thread_;
};

// Starts a thread that blocks every signal, so that handlers run in the program's own threads.
// std::system_error if there can be none.
std::thread start_quiet_thread(std::function<void()> body);
// What was being done when a thread could not be started or a descriptor not be watched.
Status io_trouble(const std::string& doing, const std::system_error& error);

}  // namespace hv::runtime
