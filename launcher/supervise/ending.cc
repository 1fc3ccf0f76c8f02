// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/ending.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <memory>
#include <optional>
#include <utility>

#include "launcher/supervise/timeouts.h"

namespace hv::launcher {
namespace {

// More than a rank's streams can hold: what they still have comes, and is dropped here.
constexpr std::uint32_t kDiscardCredit = 1u << 30;

}  // namespace

namespace asio = boost::asio;

// With a host lost, or given up by its agent, nothing may run 5 s later, anywhere, whatever --grace
// says (DESIGN §6, promise 1).
Duration Ending::grace_of_end() const {
  const bool is_whole =
      job_.all_hosts([](const HostState& host) { return !host.lost && !host.gave_up; });
  return is_whole ? job_.spec.grace : std::min(job_.spec.grace, kMostGraceAfterLoss);
}

// Every host is empty and all output is here.
bool Ending::is_settled() const {
  return !sweep_.is_awaited() &&
         job_.all_hosts([](const HostState& host) { return !host.is_there() || host.empty; }) &&
         std::all_of(job_.ranks.begin(), job_.ranks.end(),
                     [](const RankState& rank) { return rank.open_streams <= 0; });
}

// Hosts that are lost meanwhile are swept, and that is waited for. False: too late, or or_else
// holds.
asio::awaitable<bool> Ending::until_settled(TimePoint deadline, std::function<bool()> or_else) {
  for (;;) {
    sweep_.look_for_lost_hosts();
    if (is_settled()) co_return true;
    const TimePoint limit = sweep_.is_awaited() ? std::max(deadline, sweep_.deadline()) : deadline;
    if (now() >= limit || or_else()) co_return is_settled();
    co_await job_.change.wait(sweep_.is_awaited() ? std::min(limit, sweep_.deadline()) : limit);
  }
}

asio::awaitable<void> Ending::end_hosts(bool in_order) {
  const Duration grace = grace_of_end();
  job_.ending = true;
  job_.send_to_all(wire::End{std::chrono::duration<double>(grace).count()});
  // Output may wait for a slow reader as long as it likes, unless somebody wants to leave.
  if (in_order && !job_.stop &&
      co_await until_settled(TimePoint::max(), [this] { return job_.stop.has_value(); }))
    co_return;
  TimePoint deadline = now() + grace + kEndMargin;
  const auto at_once = [this] { return job_.stop_at_once; };
  if (co_await until_settled(deadline, [this] { return job_.ranks_ended() || job_.stop_at_once; }))
    co_return;
  if (job_.ranks_ended()) {
    waits_for_reader_since_ = now();
    if (co_await until_settled(job_.stop ? reader_deadline() : deadline, at_once)) co_return;
    discard_output();
    deadline = std::max(deadline, now() + kDiscardTimeout);
  }
  if (co_await until_settled(deadline, at_once) || !job_.stop_at_once) co_return;
  discard_output();
  job_.send_to_all(wire::End{0});
  co_await until_settled(now() + kEndMargin, [] { return false; });
}

// Nobody reads it any more, and it would hold the agents back.
void Ending::discard_output() {
  if (std::exchange(discards_output_, true)) return;
  for (std::size_t rank = 0; rank < job_.ranks.size(); ++rank) {
    HostState& host = job_.hosts[static_cast<std::size_t>(job_.plan.ranks[rank].host)];
    if (host.is_there())
      host.link->send(wire::Credit{static_cast<std::uint32_t>(rank), kDiscardCredit});
  }
}

// When output no longer waits for its reader: one moment for all that wait, so that waits do
// not add up.
TimePoint Ending::reader_deadline() const {
  if (!job_.stop) return TimePoint::max();
  if (job_.stop_at_once) return now();
  return std::max(job_.stopped_at + kReaderTimeout, waits_for_reader_since_ + kLeastReaderTimeout);
}

asio::awaitable<void> Ending::drain(OutputRoom& room) {
  const auto drained = std::make_shared<bool>(false);
  room.flush_then([this, drained] {
    asio::post(job_.executor, [this, drained] {
      *drained = true;
      job_.change.notify();
    });
  });
  std::optional<TimePoint> deadline;
  while (!*drained) {
    if (job_.stop && !deadline) deadline = reader_deadline();
    if (deadline && (now() >= *deadline || job_.stop_at_once)) co_return;
    co_await job_.change.wait(deadline.value_or(TimePoint::max()));
  }
}

}  // namespace hv::launcher
