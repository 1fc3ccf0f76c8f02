// AgentClock: how far an agent's wall clock is ahead of hvrun's. Pure: times are passed in, in ns.
// SPDX-License-Identifier: Apache-2.0
//
// The exchange of messages with the shortest round trip decides: half of that is the error. The
// clock of an agent may show anything, so differences wrap instead of being undefined.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace hv::launcher {

class AgentClock {
 public:
  // A message of the agent that came without a request. Counts until there is an exchange.
  void add_one_way(std::int64_t agent, std::int64_t received) {
    if (!round_trip_) ahead_ = difference(agent, received);
  }
  // A request of hvrun, and its answer.
  void add_exchange(std::int64_t sent, std::int64_t agent, std::int64_t received) {
    const std::int64_t round_trip = std::max<std::int64_t>(0, difference(received, sent));
    if (round_trip_ && round_trip > *round_trip_) return;
    round_trip_ = round_trip;
    ahead_ = difference(agent, received - round_trip / 2);
  }

  std::int64_t ahead() const { return ahead_; }
  // none: no exchange yet.
  std::optional<std::int64_t> round_trip() const { return round_trip_; }
  // A time of the agent, on hvrun's clock.
  std::int64_t corrected(std::int64_t agent) const { return difference(agent, ahead_); }

 private:
  static std::int64_t difference(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
  }

  std::int64_t ahead_ = 0;
  std::optional<std::int64_t> round_trip_;  // the shortest
};

}  // namespace hv::launcher
