// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/job.h"

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "launcher/allocation/host_names.h"
#include "src/base/text.h"

namespace hv::launcher {

namespace asio = boost::asio;

asio::awaitable<void> Change::wait(TimePoint deadline) {
  boost::system::error_code ignored;
  asio::steady_timer timer(executor_, deadline);
  const auto entry = waiting_.insert(waiting_.end(), &timer);
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  waiting_.erase(entry);
}

Host& Job::add_host(HostTarget target) {
  Host& host = hosts.add(std::move(target));
  slots.add_host(host.id);
  return host;
}

void Job::begin_epoch(LaunchPlan plan) {
  plan_ = std::move(plan);
  for (PlannedRank& rank : plan_.ranks) rank.identity.job_id = identity.id;
  slots.begin_epoch(plan_, hosts.size());
  for (Host& host : hosts)
    if (!slots.position_of(host.id)) host.drop_link();
  policy.emplace(static_cast<int>(slots.count()));
  fences.emplace(slots.epoch().hosts.size());
}

void Job::request_stop(StopReason reason) {
  if (stop_) return;
  stop_ = std::move(reason);
  stop_->at = now();
  change.notify();
}

void Job::request_stop_at_once() {
  if (!stop_) return;
  stop_->at_once = true;
  change.notify();
}

std::string Job::running_ranks() const {
  std::vector<int> running;
  std::vector<std::string> names;
  for (int rank = 0; rank < static_cast<int>(slots.count()); ++rank) {
    if (slots.of_rank(rank).has_ended()) continue;
    running.push_back(rank);
    names.push_back(host_of(rank).target.name);
  }
  if (running.empty()) return "";
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return ranges_of("rank", running) + " on " + named_hosts_text(names);
}

asio::awaitable<bool> Job::until(std::function<bool()> done, TimePoint deadline, bool heed_stop) {
  while (!done()) {
    if (now() >= deadline || (heed_stop && stop_)) co_return false;
    co_await change.wait(deadline);
  }
  co_return true;
}

asio::awaitable<bool> Job::query(TimePoint deadline) {
  const std::uint32_t number = ++queries_;
  send_to_all(wire::Query{number});
  co_return co_await until(
      [this, number] {
        return all_hosts([number](const Host& host) {
          return !host.has_agent() || host.answers.ranks.number >= number;
        });
      },
      deadline);
}

bool Job::have_ranks_ended() const {
  return std::all_of(slots.begin(), slots.end(), [this](const Slot& slot) {
    // The agent has closed the streams of a rank that it will not start.
    const bool was_given_up =
        stage.may_ranks_run() && slot.phase == Slot::Phase::kWaiting && slot.open_streams <= 0;
    return slot.has_ended() || was_given_up;
  });
}

bool Job::all_hosts(const std::function<bool(const Host&)>& holds) const {
  const auto all = members();
  return std::all_of(all.begin(), all.end(), holds);
}

}  // namespace hv::launcher
