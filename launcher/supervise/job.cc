// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/job.h"

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace hv::launcher {

namespace asio = boost::asio;

asio::awaitable<void> Change::wait(TimePoint deadline) {
  boost::system::error_code ignored;
  timer_.expires_at(deadline);
  co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

asio::awaitable<bool> Job::until(std::function<bool()> done, TimePoint deadline, bool heed_stop) {
  while (!done()) {
    if (now() >= deadline || (heed_stop && stop)) co_return false;
    co_await change.wait(deadline);
  }
  co_return true;
}

bool Job::all_hosts(const std::function<bool(const HostState&)>& holds) const {
  return std::all_of(hosts.begin(), hosts.end(), holds);
}

}  // namespace hv::launcher
