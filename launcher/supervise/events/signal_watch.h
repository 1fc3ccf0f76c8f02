// What hvrun's own signals mean for the job.
// SPDX-License-Identifier: Apache-2.0
//
//   SIGINT, SIGTERM, SIGHUP (unless ignored at start)   end the job; a second one ends it at once
//   SIGQUIT                                             the same, after the ranks' stacks
//   SIGTSTP                                             stop the ranks, make agents wait, then stop
//                                                       hvrun; ranks learn of it before, and again
//                                                       when all continue
//   SIGTTIN (unless ignored at start)                   the same; caused by a background read
//   SIGUSR1, SIGUSR2                                    forwarded to the ranks
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/signal_set.hpp>
#include <cstdint>
#include <functional>

#include "launcher/supervise/events/job_events.h"
#include "launcher/supervise/job.h"

namespace hv::launcher {

class SignalWatch {
 public:
  // Both outlive this. on_input_stop: SIGTTIN has stopped hvrun, and it continues; or it could not
  // be stopped (false).
  SignalWatch(Job& job, JobEvents& events, std::function<void(bool was_stopped)> on_input_stop);
  // Signals become events, one after the other; those that stop hvrun are handled before the next.
  void start();
  void handle(const SignalReceived& event);

 private:
  boost::asio::awaitable<void> loop();
  boost::asio::awaitable<bool> pause(int signal);
  boost::asio::awaitable<void> pause_for_input();
  boost::asio::awaitable<void> end_silence(std::uint32_t number);
  std::uint32_t send_silence(bool is_allowed);
  bool have_all_noted(std::uint32_t number) const;

  Job& job_;
  JobEvents& events_;
  std::function<void(bool)> on_input_stop_;
  boost::asio::signal_set signals_;
  std::uint32_t silences_ = 0;  // sent to the agents so far
};

}  // namespace hv::launcher
