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

Heartbeat::Heartbeat(EventLoop& loop, HvrunLink& link, std::function<void()> on_interval)
    : loop_(loop),
      link_(link),
      on_interval_(std::move(on_interval)),
      timeout_(kFirstTimeout, now()) {
  await_next();
}

void Heartbeat::set_timeout(Duration lost_after) {
  timeout_.set(std::max<Duration>(lost_after, kShortestTimeout), now());
  loop_.cancel(next_check_);
  await_next();
}

void Heartbeat::await_next() {
  next_check_ = loop_.call_after(timeout_.interval(), [this] { check_and_ping(); });
}

void Heartbeat::check_and_ping() {
  await_next();
  on_interval_();
  if (link_.is_lost()) return;
  if (timeout_.check(now())) return link_.give_up("hvrun was silent for too long");
  if (!timeout_.is_paused()) link_.send(wire::Ping{wall_clock_ns()});
}

}  // namespace hv::launcher
