// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/late_hosts.h"

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <optional>
#include <vector>

#include "launcher/allocation/host_names.h"
#include "src/base/log.h"
#include "src/base/text.h"

namespace hv::launcher {

namespace asio = boost::asio;

namespace {

constexpr Duration kFirstPause = std::chrono::milliseconds(200);
constexpr Duration kLongestPause = std::chrono::seconds(3);
// Until the user hears of hosts that are awaited; with --verbose as soon as all have been asked.
constexpr Duration kTellAfter = std::chrono::seconds(5);
constexpr Duration kTellVerbose = std::chrono::milliseconds(150);

// Until then, or until the deadline has passed, which is told by the next who asks.
asio::awaitable<void> pause(Duration duration, const Error& reason, StartDeadline& deadline) {
  asio::steady_timer timer(co_await asio::this_coro::executor, duration);
  const auto phase = deadline.enter(reason.what(), reason.hint(), [&timer] { timer.cancel(); });
  boost::system::error_code ignored;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

}  // namespace

struct LateHosts::Awaited : std::enable_shared_from_this<LateHosts::Awaited> {
  explicit Awaited(const asio::any_io_executor& executor) : teller(executor) {}
  asio::steady_timer teller;
  bool is_armed = false;
  std::map<std::string, std::string> reasons;  // by host
  std::set<std::string> told;

  void arm() {
    if (std::exchange(is_armed, true)) return;
    teller.expires_after(log_enabled(LogLevel::kInfo) ? kTellVerbose : kTellAfter);
    teller.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
      self->is_armed = false;
      if (!error) self->tell();
    });
  }

  void tell() {
    std::vector<std::string> names;
    for (const auto& [host, reason] : reasons)
      if (told.insert(host).second) names.push_back(host);
    if (names.empty()) return;
    HV_LOG(kWarn, "start") << "waiting for " << hosts_text(names) << ": " << reasons.at(names[0]);
  }
};

void LateHosts::await_host(const asio::any_io_executor& executor, const std::string& host,
                           const Error& reason) {
  if (!awaited_) awaited_ = std::make_shared<Awaited>(executor);
  awaited_->reasons[host] = reason.what();
  if (awaited_->told.count(host) == 0) awaited_->arm();
}

asio::awaitable<std::unique_ptr<AgentChannel>> LateHosts::start_when_there(const std::string& host,
                                                                           bool may_come_late,
                                                                           StartDeadline& deadline,
                                                                           const Attempt& attempt) {
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  std::optional<Error> reason;
  for (Duration wait = kFirstPause;; wait = std::min(2 * wait, kLongestPause)) {
    try {
      auto channel = co_await attempt();
      if (awaited_) awaited_->reasons.erase(host);
      seen_.insert(host);
      co_return channel;
    } catch (const LoginRefused& error) {
      reason.emplace(error);
    } catch (const NotThereYet& error) {
      if (!may_come_late || seen_.count(host) > 0) {
        if (awaited_) awaited_->reasons.erase(host);
        throw;
      }
      reason.emplace(error);
    } catch (const Error&) {
      // What the deadline has broken off is told by the attempts before it.
      if (!reason || !deadline.passed()) {
        if (awaited_) awaited_->reasons.erase(host);
        throw;
      }
    }
    await_host(executor, host, *reason);
    std::uniform_real_distribution<double> part(0.5, 1);
    const auto some = std::chrono::duration_cast<Duration>(wait * part(chance_));
    if (!deadline.passed()) co_await pause(some, *reason, deadline);
    if (!deadline.passed()) continue;
    awaited_->reasons.erase(host);
    throw Error(ErrorKind::kTimeout,
                std::string(reason->what()) + ", until the " + format_duration(deadline.timeout()) +
                    " of --start-timeout were over",
                reason->hint());
  }
}

}  // namespace hv::launcher
