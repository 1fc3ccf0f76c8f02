// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/slot_table.h"

namespace hv::launcher {

void SlotTable::begin_epoch(const LaunchPlan& plan, std::size_t hosts) {
  epoch_.hosts.clear();
  epoch_.slots.clear();
  slots_.clear();
  ranks_.assign(hosts, {});
  positions_.assign(hosts, std::nullopt);
  for (const PlannedHost& host : plan.hosts) {
    positions_.at(host.entry) = static_cast<int>(epoch_.hosts.size());
    epoch_.hosts.push_back(HostId{static_cast<std::uint32_t>(host.entry)});
  }
  for (const PlannedRank& rank : plan.ranks) {
    const HostId host = epoch_.hosts.at(static_cast<std::size_t>(rank.host));
    epoch_.slots.push_back(SlotId{static_cast<std::uint32_t>(slots_.size())});
    slots_.emplace_back().host = host;
    ranks_[static_cast<std::size_t>(host)].push_back(rank.identity.rank);
  }
}

const std::vector<int>& SlotTable::ranks_on(HostId host) const {
  static const std::vector<int> none;
  const auto index = static_cast<std::size_t>(host);
  return index < ranks_.size() ? ranks_[index] : none;
}

std::optional<int> SlotTable::position_of(HostId host) const {
  const auto index = static_cast<std::size_t>(host);
  return index < positions_.size() ? positions_[index] : std::nullopt;
}

}  // namespace hv::launcher
