// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/signal_watch.h"

#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>

namespace hv::launcher {
namespace {

namespace asio = boost::asio;

bool is_ignored(int signal) {
  struct sigaction current {};
  ::sigaction(signal, nullptr, &current);
  return current.sa_handler == SIG_IGN;
}

// How long a stop waits for the agents to hear of it; over a slow link they notice the silence much
// later.
constexpr auto kTellAgents = std::chrono::milliseconds(300);

}  // namespace

SignalWatch::SignalWatch(Job& job) : job_(job), signals_(job.executor) {
  ::signal(SIGPIPE, SIG_IGN);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2}) signals_.add(signal);
  for (const int signal : {SIGHUP, SIGTSTP}) {
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

asio::awaitable<void> SignalWatch::pause() {
  job_.send_to_all(wire::Pause{true});
  co_await job_.until(
      [this] {
        return job_.all_hosts(
            [](const HostState& host) { return !host.is_there() || host.link->flushed(); });
      },
      now() + kTellAgents, false);
  ::kill(::getpid(), SIGSTOP);  // returns when SIGCONT comes
  for (HostState& host : job_.hosts) {
    if (host.is_there()) host.link->pardon_silence();
  }
  job_.send_to_all(wire::Pause{false});
}

asio::awaitable<void> SignalWatch::loop() {
  for (;;) {
    boost::system::error_code error;
    const int signal =
        co_await signals_.async_wait(asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return;
    if (signal == SIGTSTP) {
      co_await pause();
    } else if (signal == SIGUSR1 || signal == SIGUSR2) {
      job_.send_to_all(wire::Signal{signal});
    } else {
      request_end(signal);
    }
  }
}

}  // namespace hv::launcher
