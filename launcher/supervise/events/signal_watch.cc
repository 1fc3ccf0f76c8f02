// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/events/signal_watch.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <utility>

#include "launcher/supervise/streams/window_size.h"
#include "launcher/supervise/timeouts.h"
#include "src/base/clock.h"
#include "src/process/signals.h"

namespace hv::launcher {

namespace asio = boost::asio;

SignalWatch::SignalWatch(Job& job, JobEvents& events, std::function<void(bool)> on_input_stop)
    : job_(job), events_(events), on_input_stop_(std::move(on_input_stop)), signals_(job.executor) {
  ::signal(SIGPIPE, SIG_IGN);
  for (const int signal : {SIGTERM, SIGUSR1, SIGUSR2}) signals_.add(signal);
  for (const int signal : {SIGINT, SIGQUIT, SIGHUP, SIGTSTP, SIGTTIN}) {
    if (!is_ignored(signal)) signals_.add(signal);
  }
  if (!job.spec.output.pty) return;
  signals_.add(SIGWINCH);
  signals_.add(SIGCONT);
}

void SignalWatch::start() {
  asio::co_spawn(
      job_.executor, [this] { return loop(); }, asio::detached);
}

void SignalWatch::handle(const SignalReceived& event) {
  if (event.signal == SIGUSR1 || event.signal == SIGUSR2) {
    job_.signals.forwarded = event.signal;
    job_.send_to_all(wire::Signal{event.signal});
  } else if (event.signal == SIGWINCH || event.signal == SIGCONT) {
    job_.send_to_all(window_of_ranks(job_));
  } else if (job_.stop()) {
    if (!job_.stop()->is_repeated_by(event.signal, now())) job_.request_stop_at_once();
  } else {
    job_.request_stop({StopReason::Kind::kSignal, event.signal});
  }
}

std::uint32_t SignalWatch::send_heartbeat_pause(bool is_allowed) {
  ++heartbeat_pauses_;
  for (Host& host : job_.members()) {
    if (!host.has_agent()) continue;
    host.answers.heartbeat_pause.ask(heartbeat_pauses_);
    host.send(wire::Silence{heartbeat_pauses_, is_allowed});
  }
  return heartbeat_pauses_;
}

// A host that connects later was not sent it.
bool SignalWatch::have_all_applied(std::uint32_t number) const {
  return job_.all_hosts([number](const Host& host) {
    return !host.has_agent() || !host.answers.heartbeat_pause.is_open(number);
  });
}

// While a host may still be stopped, ranks of other hosts must not count its missing heartbeats. A
// later pause does the same for itself.
asio::awaitable<void> SignalWatch::resume_heartbeats(std::uint32_t number) {
  co_await job_.until(
      [this, number] { return heartbeat_pauses_ != number || have_all_applied(number); },
      TimePoint::max(), false);
  if (heartbeat_pauses_ == number) send_heartbeat_pause(false);
}

// Returns when hvrun continues. False: it was not stopped.
asio::awaitable<bool> SignalWatch::pause(int signal) {
  const std::uint32_t announced = send_heartbeat_pause(true);
  co_await job_.until([this, announced] { return have_all_applied(announced); },
                      now() + kStopNoticeTimeout, false);
  job_.send_to_all(wire::Pause{true});
  co_await job_.until(
      [this] {
        return job_.all_hosts(
            [](const Host& host) { return !host.has_agent() || host.link->is_flushed(); });
      },
      now() + kStopNoticeTimeout, false);
  // Returns when SIGCONT has come, or at once.
  const bool was_stopped =
      signal == SIGTTIN ? stop_as_the_kernel_would(SIGTTIN) : stop_for_terminal();
  for (const Host& host : job_.hosts)
    if (host.has_agent()) host.link->restart_heartbeat_timeout();
  job_.send_to_all(wire::Pause{false});
  // SIGCONT did not become an event, as stopping handles it.
  if (job_.spec.output.pty) job_.send_to_all(window_of_ranks(job_));
  const std::uint32_t repeated = send_heartbeat_pause(true);  // applied once the ranks continue
  asio::co_spawn(
      job_.executor, [this, repeated] { return resume_heartbeats(repeated); }, asio::detached);
  co_return was_stopped;
}

asio::awaitable<void> SignalWatch::pause_for_input() {
  if (job_.stop() || job_.stage.is_ending()) co_return;  // no rank needs input any more
  on_input_stop_(co_await pause(SIGTTIN));
}

asio::awaitable<void> SignalWatch::loop() {
  for (;;) {
    boost::system::error_code error;
    const int signal =
        co_await signals_.async_wait(asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return;
    if (signal == SIGTSTP) {
      co_await pause(SIGTSTP);
    } else if (signal == SIGTTIN) {
      co_await pause_for_input();
    } else {
      events_.add(SignalReceived{signal});
    }
  }
}

}  // namespace hv::launcher
