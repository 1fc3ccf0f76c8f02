// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/shutdown.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <memory>
#include <optional>
#include <utility>

#include "launcher/supervise/timeouts.h"

namespace hv::launcher {
namespace {

// More than a rank's streams can hold: what they still have arrives, and is dropped here.
constexpr std::uint32_t kDiscardCredit = 1u << 30;

}  // namespace

namespace asio = boost::asio;

// When a host is lost, or its agent ends the job there, no process of the job may run anywhere 5 s
// later, whatever --grace says.
Duration Shutdown::grace_of_end() const {
  const bool is_whole = job_.all_hosts(
      [](const Host& host) { return !host.phase.is_lost() && !host.phase.unrequested_end(); });
  return is_whole ? job_.spec.ending.grace : std::min(job_.spec.ending.grace, kMostGraceAfterLoss);
}

// Every host is empty and all output has arrived.
bool Shutdown::is_settled() const {
  return !sweep_.is_awaited() &&
         job_.all_hosts([](const Host& host) { return !host.is_there(); }) &&
         std::all_of(job_.slots.begin(), job_.slots.end(),
                     [](const Slot& slot) { return slot.open_streams <= 0; });
}

// Hosts that are lost meanwhile are swept, and that is waited for. False: too late, or or_else
// holds.
asio::awaitable<bool> Shutdown::until_settled(TimePoint deadline, std::function<bool()> or_else) {
  for (;;) {
    sweep_.sweep_lost_hosts();
    if (is_settled()) co_return true;
    const TimePoint limit = sweep_.is_awaited() ? std::max(deadline, sweep_.deadline()) : deadline;
    if (now() >= limit || or_else()) co_return is_settled();
    co_await job_.change.wait(sweep_.is_awaited() ? std::min(limit, sweep_.deadline()) : limit);
  }
}

asio::awaitable<void> Shutdown::end_hosts(bool in_order) {
  const Duration grace = grace_of_end();
  job_.stage.begin_end();
  job_.send_to_all(wire::End{std::chrono::duration<double>(grace).count()});
  for (Host& host : job_.members())
    if (host.link) host.phase.end();
  // Output may wait for a slow reader without limit, unless the user ends the job.
  if (in_order && !job_.stop() &&
      co_await until_settled(TimePoint::max(), [this] { return job_.stop().has_value(); }))
    co_return;
  TimePoint deadline = now() + grace + kEndMargin;
  const auto at_once = [this] { return job_.stops_at_once(); };
  if (co_await until_settled(deadline,
                             [this] { return job_.have_ranks_ended() || job_.stops_at_once(); }))
    co_return;
  if (job_.have_ranks_ended()) {
    waits_for_reader_since_ = now();
    if (co_await until_settled(job_.stop() ? reader_deadline() : deadline, at_once)) co_return;
    discard_output();
    deadline = std::max(deadline, now() + kDiscardTimeout);
  }
  if (co_await until_settled(deadline, at_once) || !job_.stops_at_once()) co_return;
  discard_output();
  job_.send_to_all(wire::End{0});
  co_await until_settled(now() + kEndMargin, [] { return false; });
}

// No reader takes it any more, and it would hold the agents back.
void Shutdown::discard_output() {
  if (output_.is_discarded()) return;
  output_.discard();
  for (int rank = 0; rank < static_cast<int>(job_.slots.count()); ++rank)
    job_.host_of(rank).send(wire::Credit{static_cast<std::uint32_t>(rank), kDiscardCredit});
}

// When output no longer waits for its reader: one point in time for all that wait, so that waits do
// not add up.
TimePoint Shutdown::reader_deadline() const {
  if (!job_.stop()) return TimePoint::max();
  if (job_.stops_at_once()) return now();
  return std::max(job_.stop()->at + kReaderTimeout, waits_for_reader_since_ + kLeastReaderTimeout);
}

asio::awaitable<void> Shutdown::drain() {
  const auto drained = std::make_shared<bool>(false);
  output_.room().flush_then([this, drained] {
    asio::post(job_.executor, [this, drained] {
      *drained = true;
      job_.change.notify();
    });
  });
  std::optional<TimePoint> deadline;
  while (!*drained) {
    if (job_.stop() && !deadline) deadline = reader_deadline();
    if (deadline && (now() >= *deadline || job_.stops_at_once())) co_return;
    co_await job_.change.wait(deadline.value_or(TimePoint::max()));
  }
}

}  // namespace hv::launcher
