// Tests of which host each rank is on, by rule, as tables of cases.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/placement.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

using namespace hv::launcher;

namespace {

// "aab": the hosts of ranks 0, 1, 2.
std::string placed(const std::string& map_by, const std::string& rank_by,
                   const std::vector<HostCapacity>& hosts, int ranks, bool oversubscribe = false) {
  const RankBy order = rank_by.empty() ? RankBy::kPlacement : *parse_rank_by(rank_by);
  std::string text;
  for (const int host : place_ranks(*parse_map_by(map_by), order, hosts, ranks, oversubscribe))
    text += static_cast<char>('a' + host);
  return text;
}

}  // namespace

TEST_CASE("ranks go where the rule says, and are numbered as asked") {
  const std::vector<HostCapacity> even{{2}, {2}}, uneven{{3}, {1}, {2}}, bounded{{2, 2}, {2, 5}};
  struct Case {
    const char* map_by;
    const char* rank_by;
    std::vector<HostCapacity> hosts;
    int ranks;
    bool oversubscribe;
    const char* expected;
  };
  for (const Case& c : {
           Case{"slot", "", even, 4, false, "aabb"},
           Case{"slot", "", even, 3, false, "aab"},
           Case{"slot", "", even, 1, false, "a"},
           Case{"slot", "node", even, 4, false, "abab"},
           Case{"slot", "node", uneven, 6, false, "abcaca"},
           Case{"slot", "", uneven, 5, false, "aaabc"},
           Case{"node", "", even, 4, false, "abab"},
           Case{"node", "", even, 3, false, "aba"},
           Case{"node", "slot", even, 3, false, "aab"},
           Case{"node", "", uneven, 6, false, "abcaca"},
           Case{"node", "slot", uneven, 5, false, "aabcc"},
           Case{"ppr:1:node", "", uneven, 3, false, "abc"},
           Case{"ppr:2:node", "", even, 4, false, "aabb"},
           Case{"ppr:2:node", "", even, 3, false, "aab"},
           Case{"ppr:2:node", "node", even, 4, false, "abab"},
           Case{"ppr:3:node", "", even, 6, true, "aaabbb"},
           Case{"gpu", "", even, 4, false, "aabb"},
           Case{"numa", "", even, 4, false, "aabb"},
           Case{"slot", "", even, 6, true, "aaabbb"},
           Case{"slot", "", even, 7, true, "aaaabbb"},
           Case{"slot", "", even, 3, true, "aab"},
           Case{"slot", "", bounded, 7, true, "aabbbbb"},
           Case{"node", "", bounded, 7, true, "ababbbb"},
           Case{"slot", "", {{0}, {2}}, 2, false, "bb"},
       }) {
    CAPTURE(c.map_by);
    CAPTURE(c.rank_by);
    CAPTURE(c.ranks);
    CHECK(placed(c.map_by, c.rank_by, c.hosts, c.ranks, c.oversubscribe) == c.expected);
  }
}

TEST_CASE("how many ranks hosts have by themselves, and how many at most") {
  const std::vector<HostCapacity> hosts{{2, 3}, {4, std::nullopt}};
  CHECK(natural_ranks({MapBy::kSlot}, hosts) == 6);
  CHECK(natural_ranks({MapBy::kPerNode, 3}, hosts) == 6);
  CHECK(most_ranks({MapBy::kSlot}, hosts, false) == 6);
  CHECK(most_ranks({MapBy::kPerNode, 3}, hosts, false) == 5);
  CHECK(most_ranks({MapBy::kPerNode, 3}, hosts, true) == 6);
  CHECK(most_ranks({MapBy::kSlot}, hosts, true) > 1 << 20);
}

TEST_CASE("rules that are none are not understood") {
  for (const char* text : {"", "slots", "ppr", "ppr:2", "ppr:0:node", "ppr:x:node", "ppr:2:socket",
                           "ppr:-1:node", "ppr:99999999:node", "ppr:2:node:1"})
    CHECK_FALSE(parse_map_by(text).has_value());
  CHECK(parse_map_by("ppr:4:node")->per_node == 4);
  CHECK_FALSE(parse_rank_by("gpu").has_value());
}

TEST_CASE("whatever the rule: every rank has a host, and no host more than it takes") {
  std::mt19937 random(3);
  for (int round = 0; round < 3000; ++round) {
    std::vector<HostCapacity> hosts(1 + random() % 6);
    for (HostCapacity& host : hosts) {
      host.slots = static_cast<int>(random() % 5);
      if (random() % 2) host.most = host.slots + static_cast<int>(random() % 4);
    }
    const char* rules[] = {"slot", "node", "gpu", "ppr:2:node", "ppr:3:node"};
    const std::string rule = rules[random() % 5];
    const bool oversubscribe = random() % 2;
    const long most = most_ranks(*parse_map_by(rule), hosts, oversubscribe);
    const int ranks = static_cast<int>(std::min<long>(most, static_cast<long>(random() % 40)));
    const char* orders[] = {"", "slot", "node"};
    const std::string text = placed(rule, orders[random() % 3], hosts, ranks, oversubscribe);
    CHECK(static_cast<int>(text.size()) == ranks);
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      const auto share = std::count(text.begin(), text.end(), static_cast<char>('a' + i));
      CHECK(share <= (oversubscribe ? hosts[i].most.value_or(1 << 30) : hosts[i].slots));
    }
  }
}

TEST_CASE("a million ranks on very uneven hosts are placed at once") {
  std::vector<HostCapacity> hosts(65536, HostCapacity{1, 1});
  hosts[7].most.reset();
  CHECK(place_ranks({MapBy::kNode}, RankBy::kPlacement, hosts, 1 << 20, true).size() == 1 << 20);
}
