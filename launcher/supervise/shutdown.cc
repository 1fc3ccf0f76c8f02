// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/shutdown.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <memory>
#include <optional>
#include <utility>

#include "launcher/supervise/timeouts.h"

namespace hv::launcher {

namespace asio = boost::asio;

// A scheduler that takes the hosts back signals hvrun or its agents.
EndedBy Shutdown::ended_by() const {
  bool is_agent_signalled = false;
  for (const Host& host : std::as_const(job_).members()) {
    const UnrequestedEnd* const end = host.phase.unrequested_end();
    if (host.phase.is_lost() || (end && !end->leaves_grace)) return EndedBy::kLoss;
    if (end) is_agent_signalled = true;
  }
  return is_agent_signalled || job_.is_stopped_by_scheduler() ? EndedBy::kScheduler : EndedBy::kJob;
}

// Every host is empty and all output has arrived.
bool Shutdown::is_settled() const {
  return !sweep_.is_awaited() &&
         job_.all_hosts([](const Host& host) { return !host.has_agent(); }) &&
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
  const Duration grace = this->grace();
  job_.stage.begin_end();
  job_.send_to_all(wire::End{Seconds(grace).count(), ended_by() == EndedBy::kScheduler});
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

// Without a reader, pending output would block the agents.
void Shutdown::discard_output() {
  if (output_.is_discarded()) return;
  output_.discard();
  output_.results().discard();
  for (int rank = 0; rank < static_cast<int>(job_.slots.count()); ++rank)
    job_.host_of(rank).send(
        wire::Credit{static_cast<std::uint32_t>(rank), OutputLedger::kDiscardCredit});
  if (job_.spec.output.result_fd && job_.slots.count() > 0)
    job_.host_of(0).send(wire::Credit{0, OutputLedger::kDiscardCredit, true});
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
  while (!*drained || !output_.results().is_written()) {
    if (job_.stop() && !deadline) deadline = reader_deadline();
    if (deadline && (now() >= *deadline || job_.stops_at_once())) co_return;
    co_await job_.change.wait(deadline.value_or(TimePoint::max()));
  }
}

}  // namespace hv::launcher
