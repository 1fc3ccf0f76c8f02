// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/events/signal_watch.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <utility>

#include "launcher/supervise/timeouts.h"
#include "src/process/signals.h"

namespace hv::launcher {

namespace asio = boost::asio;

SignalWatch::SignalWatch(Job& job, JobEvents& events, std::function<void(bool)> on_input_stop)
    : job_(job), events_(events), on_input_stop_(std::move(on_input_stop)), signals_(job.executor) {
  ::signal(SIGPIPE, SIG_IGN);
  for (const int signal : {SIGINT, SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2}) signals_.add(signal);
  for (const int signal : {SIGHUP, SIGTSTP, SIGTTIN}) {
    if (!is_ignored(signal)) signals_.add(signal);
  }
}

void SignalWatch::start() {
  asio::co_spawn(
      job_.executor, [this] { return loop(); }, asio::detached);
}

void SignalWatch::handle(const SignalReceived& event) {
  if (event.signal == SIGUSR1 || event.signal == SIGUSR2)
    job_.send_to_all(wire::Signal{event.signal});
  else if (job_.stop())
    job_.request_stop_at_once();
  else
    job_.request_stop({StopReason::Kind::kSignal, event.signal});
}

std::uint32_t SignalWatch::send_silence(bool is_allowed) {
  job_.send_to_all(wire::Silence{++silences_, is_allowed});
  return silences_;
}

bool SignalWatch::have_all_noted(std::uint32_t number) const {
  return job_.all_hosts([number](const Host& host) {
    return !host.is_there() || host.answers.silence_noted >= number;
  });
}

// While a host may still be stopped, ranks of other hosts must not count its missing heartbeats. A
// later pause does the same for itself.
asio::awaitable<void> SignalWatch::end_silence(std::uint32_t number) {
  co_await job_.until([this, number] { return silences_ != number || have_all_noted(number); },
                      TimePoint::max(), false);
  if (silences_ == number) send_silence(false);
}

// Until hvrun continues. False: it was not stopped.
asio::awaitable<bool> SignalWatch::pause(int signal) {
  const std::uint32_t announced = send_silence(true);
  co_await job_.until([this, announced] { return have_all_noted(announced); },
                      now() + kStopNoticeTimeout, false);
  job_.send_to_all(wire::Pause{true});
  co_await job_.until(
      [this] {
        return job_.all_hosts(
            [](const Host& host) { return !host.is_there() || host.link->flushed(); });
      },
      now() + kStopNoticeTimeout, false);
  // Returns when SIGCONT has come, or at once.
  const bool was_stopped =
      signal == SIGTTIN ? stop_as_the_kernel_would(SIGTTIN) : stop_for_terminal();
  for (const Host& host : job_.hosts)
    if (host.is_there()) host.link->pardon_silence();
  job_.send_to_all(wire::Pause{false});
  const std::uint32_t behind = send_silence(true);  // noted once the ranks continue
  asio::co_spawn(
      job_.executor, [this, behind] { return end_silence(behind); }, asio::detached);
  co_return was_stopped;
}

asio::awaitable<void> SignalWatch::pause_for_input() {
  if (job_.stop() || job_.stage.is_ending()) co_return;  // input has no use any more
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
