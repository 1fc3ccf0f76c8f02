// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/heartbeat.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace hv::launcher {
namespace {

constexpr auto kFirstTimeout = std::chrono::seconds(60);  // until SetupRequest brings --lost-after
constexpr auto kShortestTimeout = std::chrono::milliseconds(100);

}  // namespace

Heartbeat::Heartbeat(EventLoop& loop, HvrunLink& link, std::function<void()> on_beat)
    : loop_(loop), link_(link), on_beat_(std::move(on_beat)), timeout_(kFirstTimeout, now()) {
  await_next();
}

void Heartbeat::set_timeout(Duration lost_after) {
  timeout_ = HeartbeatTimeout(std::max<Duration>(lost_after, kShortestTimeout), now());
  loop_.cancel(next_beat_);
  await_next();
}

void Heartbeat::await_next() {
  next_beat_ = loop_.call_after(timeout_.interval(), [this] { beat(); });
}

void Heartbeat::beat() {
  await_next();
  on_beat_();
  if (link_.is_lost()) return;
  if (timeout_.beat(now())) return link_.give_up("hvrun was silent for too long");
  if (!timeout_.is_paused()) link_.send(wire::Ping{wall_clock_ns()});
}

}  // namespace hv::launcher
