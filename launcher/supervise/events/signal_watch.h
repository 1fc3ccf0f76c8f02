// SignalWatch: the meaning of hvrun's own signals for the job. io_context thread only.
// SPDX-License-Identifier: Apache-2.0
//
//   SIGINT, SIGTERM, SIGHUP   end the job; a second one ends it at once, but SIGTERM right after
//                             SIGTERM does not
//   SIGQUIT                   the same, after the ranks' stacks
//   SIGTSTP                   stop the ranks, make agents wait, then stop hvrun; ranks learn of it
//                             before, and again when all continue
//   SIGTTIN                   the same; caused by a background read
//   SIGUSR1, SIGUSR2          forwarded to the ranks
//   SIGWINCH, SIGCONT         with --pty: the ranks' terminals get the size of hvrun's, which gets
//                             no SIGWINCH while it is stopped: its terminal is the shell's
//
// A signal that was ignored when hvrun started stays ignored, except SIGTERM, SIGUSR1 and SIGUSR2:
// a shell script's background job ignores SIGINT and SIGQUIT, and nohup's program SIGHUP.
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
  // Both outlive this. on_input_stop: called after SIGTTIN; was_stopped: hvrun was stopped, and
  // continues.
  SignalWatch(Job& job, JobEvents& events, std::function<void(bool was_stopped)> on_input_stop);
  // Signals become events, one after the other; those that stop hvrun are handled before the next.
  void start();
  void handle(const SignalReceived& event);

 private:
  boost::asio::awaitable<void> loop();
  boost::asio::awaitable<bool> pause(int signal);
  boost::asio::awaitable<void> pause_for_input();
  // Ranks must not, or must again, count missing heartbeats of other hosts (wire::Silence). Returns
  // the number of the request.
  std::uint32_t send_heartbeat_pause(bool is_allowed);
  bool have_all_applied(std::uint32_t number) const;
  boost::asio::awaitable<void> resume_heartbeats(std::uint32_t number);

  Job& job_;
  JobEvents& events_;
  std::function<void(bool)> on_input_stop_;
  boost::asio::signal_set signals_;
  std::uint32_t heartbeat_pauses_ = 0;  // sent to the agents so far
};

}  // namespace hv::launcher
