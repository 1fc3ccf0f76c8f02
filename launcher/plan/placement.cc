// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/placement.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "src/base/check.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr long kNoLimit = std::numeric_limits<int>::max();
constexpr int kMostPerNode = 65536;

long limit_of(const MapRule& rule, const HostCapacity& host, bool oversubscribe) {
  const long limit = oversubscribe ? host.most.value_or(kNoLimit) : host.slots;
  return rule.by == MapBy::kPerNode ? std::min<long>(limit, rule.per_node) : limit;
}

// One rank for each host in turn, up to the hosts' limits: all hosts get the same number of ranks,
// except those with a lower limit, and the first few, which get one more.
std::vector<int> shares_in_turn(const std::vector<long>& limits, int ranks) {
  std::vector<long> sorted = limits;
  std::sort(sorted.begin(), sorted.end());
  long level = 0, left = ranks;
  std::size_t full = 0;  // hosts with a limit up to the level
  while (full < sorted.size()) {
    const long rising = static_cast<long>(sorted.size() - full);
    if (left < (sorted[full] - level) * rising) {
      level += left / rising;
      left %= rising;
      break;
    }
    left -= (sorted[full] - level) * rising;
    level = sorted[full++];
  }
  HV_CHECK(full < sorted.size() || left == 0, "there is room for all ranks");
  std::vector<int> shares;
  for (const long limit : limits) {
    const bool has_one_more = limit > level && left-- > 0;
    shares.push_back(static_cast<int>(std::min(limit, level)) + (has_one_more ? 1 : 0));
  }
  return shares;
}

// Fills the slots of one host after the other; the remaining ranks go to the hosts in turn.
std::vector<int> shares_by_slots(const std::vector<HostCapacity>& hosts, std::vector<long> limits,
                                 int ranks) {
  std::vector<int> shares;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const int share = static_cast<int>(std::min<long>({hosts[i].slots, limits[i], ranks}));
    shares.push_back(share);
    limits[i] -= share;
    ranks -= share;
  }
  const std::vector<int> more = shares_in_turn(limits, ranks);
  for (std::size_t i = 0; i < shares.size(); ++i) shares[i] += more[i];
  return shares;
}

// The host of each rank where every host has all of its ranks in a row.
std::vector<int> host_by_host(const std::vector<int>& shares) {
  std::vector<int> hosts;
  for (std::size_t i = 0; i < shares.size(); ++i)
    hosts.insert(hosts.end(), static_cast<std::size_t>(shares[i]), static_cast<int>(i));
  return hosts;
}

// The host of each rank where the hosts take turns.
std::vector<int> in_turn(std::vector<int> shares) {
  std::vector<int> hosts, open(shares.size());
  std::iota(open.begin(), open.end(), 0);
  while (!open.empty()) {
    std::erase_if(open, [&](const int host) {
      if (shares[static_cast<std::size_t>(host)]-- == 0) return true;
      hosts.push_back(host);
      return false;
    });
  }
  return hosts;
}

}  // namespace

std::optional<MapRule> parse_map_by(const std::string& text) {
  if (text == "slot") return MapRule{MapBy::kSlot};
  if (text == "node") return MapRule{MapBy::kNode};
  if (text == "gpu") return MapRule{MapBy::kGpu};
  if (text == "numa") return MapRule{MapBy::kNuma};
  const std::vector<std::string> words = split(text, ':');
  if (words.size() != 3 || words[0] != "ppr" || words[2] != "node") return std::nullopt;
  const auto count = parse_integer(words[1]);
  if (!count || *count < 1 || *count > kMostPerNode) return std::nullopt;
  return MapRule{MapBy::kPerNode, static_cast<int>(*count)};
}

std::optional<RankBy> parse_rank_by(const std::string& text) {
  if (text == "slot") return RankBy::kSlot;
  if (text == "node") return RankBy::kNode;
  return std::nullopt;
}

long natural_ranks(const MapRule& rule, const std::vector<HostCapacity>& hosts) {
  long ranks = 0;
  for (const HostCapacity& host : hosts)
    ranks += rule.by == MapBy::kPerNode ? rule.per_node : host.slots;
  return ranks;
}

long most_ranks(const MapRule& rule, const std::vector<HostCapacity>& hosts, bool oversubscribe) {
  long ranks = 0;
  for (const HostCapacity& host : hosts) ranks += limit_of(rule, host, oversubscribe);
  return ranks;
}

std::vector<int> place_ranks(const MapRule& rule, RankBy rank_by,
                             const std::vector<HostCapacity>& hosts, int ranks,
                             bool oversubscribe) {
  std::vector<long> limits;
  for (const HostCapacity& host : hosts) limits.push_back(limit_of(rule, host, oversubscribe));
  const bool by_turns = rule.by == MapBy::kNode;
  std::vector<HostCapacity> capacities = hosts;
  if (rule.by == MapBy::kPerNode)
    for (HostCapacity& capacity : capacities) capacity.slots = rule.per_node;
  const std::vector<int> shares =
      by_turns ? shares_in_turn(limits, ranks) : shares_by_slots(capacities, limits, ranks);
  const bool numbers_by_turns = rank_by == RankBy::kPlacement ? by_turns : rank_by == RankBy::kNode;
  return numbers_by_turns ? in_turn(shares) : host_by_host(shares);
}

}  // namespace hv::launcher
