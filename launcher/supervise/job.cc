// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/job.h"

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace hv::launcher {

namespace asio = boost::asio;

asio::awaitable<void> Change::wait(TimePoint deadline) {
  boost::system::error_code ignored;
  asio::steady_timer timer(executor_, deadline);
  const auto place = waiting_.insert(waiting_.end(), &timer);
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  waiting_.erase(place);
}

void Job::request_stop(StopRequest request) {
  if (stop) return;
  stop = std::move(request);
  stopped_at = now();
  change.notify();
}

std::string Job::running_ranks() const {
  constexpr int kNamed = 4;
  std::string words;
  int running = 0;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank].ended || ++running > kNamed) continue;
    words += (words.empty() ? "rank " : ", rank ") + std::to_string(rank) + " on host " +
             host_of(static_cast<int>(rank));
  }
  if (running > kNamed) words += " and " + std::to_string(running - kNamed) + " more";
  return words;
}

asio::awaitable<bool> Job::until(std::function<bool()> done, TimePoint deadline, bool heed_stop) {
  while (!done()) {
    if (now() >= deadline || (heed_stop && stop)) co_return false;
    co_await change.wait(deadline);
  }
  co_return true;
}

asio::awaitable<bool> Job::query(TimePoint deadline) {
  const std::uint32_t number = ++queries;
  send_to_all(wire::Query{number});
  co_return co_await until(
      [this, number] {
        return all_hosts([number](const HostState& host) {
          return !host.is_there() || host.query_answered >= number;
        });
      },
      deadline);
}

bool Job::ranks_ended() const {
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const HostState& host = hosts[static_cast<std::size_t>(plan.ranks[rank].host)];
    const bool was_never_started = ranks_may_run && !host.started &&
                                   ranks[rank].open_streams <= 0;  // its streams are told off
    if (!ranks[rank].ended && !was_never_started) return false;
  }
  return true;
}

bool Job::all_hosts(const std::function<bool(const HostState&)>& holds) const {
  return std::all_of(hosts.begin(), hosts.end(), holds);
}

}  // namespace hv::launcher
