// What hvrun's own signals mean for the job.
// SPDX-License-Identifier: Apache-2.0
//
//   SIGINT, SIGTERM, SIGHUP (unless ignored at start)   end the job; a second one ends it at once
//   SIGTSTP                                             stop the ranks, tell the agents to wait, then stop
//   SIGUSR1, SIGUSR2                                    to the ranks only
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/signal_set.hpp>

#include "launcher/supervise/job.h"

namespace hv::launcher {

class SignalWatch {
 public:
  explicit SignalWatch(Job& job);
  void start();

 private:
  boost::asio::awaitable<void> loop();
  boost::asio::awaitable<void> pause();
  void request_end(int signal);

  Job& job_;
  boost::asio::signal_set signals_;
};

}  // namespace hv::launcher
