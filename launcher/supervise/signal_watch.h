// What hvrun's own signals mean for the job.
// SPDX-License-Identifier: Apache-2.0
//
//   SIGINT, SIGTERM, SIGHUP (unless ignored at start)   end the job; a second one ends it at once
//   SIGQUIT                                             the same, once it is told where ranks stand
//   SIGTSTP                                             stop ranks, tell agents to wait, then stop;
//                                                       ranks are told first, and when all go on
//   SIGTTIN (unless ignored at start)                   the same; comes of a read in the background
//   SIGUSR1, SIGUSR2                                    to the ranks only
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/signal_set.hpp>
#include <cstdint>
#include <functional>

#include "launcher/supervise/job.h"

namespace hv::launcher {

class SignalWatch {
 public:
  // on_input_stop: SIGTTIN has stopped hvrun, and it goes on; or it could not (false).
  SignalWatch(Job& job, std::function<void(bool was_stopped)> on_input_stop);
  void start();

 private:
  boost::asio::awaitable<void> loop();
  boost::asio::awaitable<bool> pause(int signal);
  boost::asio::awaitable<void> pause_for_input();
  boost::asio::awaitable<void> end_silence(std::uint32_t number);
  std::uint32_t send_silence(bool is_allowed);
  bool has_everybody_noted(std::uint32_t number) const;
  void request_end(int signal);

  Job& job_;
  std::function<void(bool)> on_input_stop_;
  boost::asio::signal_set signals_;
  std::uint32_t silences_ = 0;  // told to the agents so far
};

}  // namespace hv::launcher
