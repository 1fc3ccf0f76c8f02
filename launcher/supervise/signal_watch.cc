// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/signal_watch.h"

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

SignalWatch::SignalWatch(Job& job, std::function<void(bool)> on_input_stop)
    : job_(job), on_input_stop_(std::move(on_input_stop)), signals_(job.executor) {
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

void SignalWatch::request_end(int signal) {
  if (!job_.stop) return job_.request_stop({StopRequest::Kind::kSignal, signal, {}});
  job_.stop_at_once = true;
  job_.change.notify();
}

std::uint32_t SignalWatch::send_silence(bool is_allowed) {
  job_.send_to_all(wire::Silence{++silences_, is_allowed});
  return silences_;
}

bool SignalWatch::has_everybody_noted(std::uint32_t number) const {
  return job_.all_hosts(
      [number](const HostState& host) { return !host.is_there() || host.silence_noted >= number; });
}

// As long as some host may not go on yet, ranks of others must not count its silence. A later pause
// sees to that itself.
asio::awaitable<void> SignalWatch::end_silence(std::uint32_t number) {
  co_await job_.until([this, number] { return silences_ != number || has_everybody_noted(number); },
                      TimePoint::max(), false);
  if (silences_ == number) send_silence(false);
}

// Until hvrun goes on. False: it has not been stopped.
asio::awaitable<bool> SignalWatch::pause(int signal) {
  const std::uint32_t announced = send_silence(true);
  co_await job_.until([this, announced] { return has_everybody_noted(announced); },
                      now() + kStopNoticeTimeout, false);
  job_.send_to_all(wire::Pause{true});
  co_await job_.until(
      [this] {
        return job_.all_hosts(
            [](const HostState& host) { return !host.is_there() || host.link->flushed(); });
      },
      now() + kStopNoticeTimeout, false);
  // Returns when SIGCONT has come, or at once.
  const bool was_stopped =
      signal == SIGTTIN ? stop_as_the_kernel_would(SIGTTIN) : stop_for_terminal();
  for (HostState& host : job_.hosts) {
    if (host.is_there()) host.link->pardon_silence();
  }
  job_.send_to_all(wire::Pause{false});
  const std::uint32_t behind = send_silence(true);  // noted once the ranks go on
  asio::co_spawn(
      job_.executor, [this, behind] { return end_silence(behind); }, asio::detached);
  co_return was_stopped;
}

asio::awaitable<void> SignalWatch::pause_for_input() {
  if (job_.stop || job_.ending) co_return;  // nobody wants input any more
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
    } else if (signal == SIGUSR1 || signal == SIGUSR2) {
      job_.send_to_all(wire::Signal{signal});
    } else {
      request_end(signal);
    }
  }
}

}  // namespace hv::launcher
