// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "launcher/check/ways.h"
#include "tests/unit/check/made_up_hosts.h"

namespace hv::launcher {
namespace {

using PathVerdicts = std::vector<std::string>;

// Four hosts; the ways of a circle are measured, all alike.
CheckInput measured_hosts() {
  CheckInput input = healthy_hosts(4);
  for (PairFacts& pair : input.pairs) {
    if (pair.to != (pair.from + 1) % 4) continue;
    pair.address = pair.reached.front();
    pair.measure.emplace();
    pair.measure->round_trip_us = 80;
    pair.measure->megabytes_per_s = 1150;
    pair.measure->segment_bytes = 1448;
  }
  return input;
}

wire::PairMeasure& way(CheckInput& input, std::size_t from) {
  for (PairFacts& pair : input.pairs)
    if (pair.from == from && pair.measure) return *pair.measure;
  FAIL("no way is measured from there");
  return *input.pairs[0].measure;
}

std::string fact_of(const CheckInput& input) { return judge(input).findings.at(0).fact; }

TEST_CASE("ways that are alike, or fast enough, are no finding") {
  CheckInput input = measured_hosts();
  CHECK(verdicts_of(input).empty());
  way(input, 1).megabytes_per_s = 310;
  way(input, 2).round_trip_us = 19000;
  way(input, 3).resent_share = 0.009;
  CHECK(verdicts_of(input).empty());
}

TEST_CASE("ways that look bad are measured again, and are what the best of it says") {
  CheckInput input = measured_hosts();
  CHECK(doubtful_ways(input).empty());
  way(input, 0).megabytes_per_s = 80;
  way(input, 1).round_trip_us = 21000;
  way(input, 2).resent_share = 0.04;
  way(input, 3).is_stuck = true;  // it took seconds to find out
  const std::vector<std::size_t> doubtful = doubtful_ways(input);
  REQUIRE(doubtful.size() == 3);
  for (const std::size_t i : doubtful) CHECK(input.pairs[i].from != 3);
  wire::PairMeasure busy, idle;
  busy.round_trip_us = 21000, busy.megabytes_per_s = 900, busy.resent_share = 0.04;
  idle.round_trip_us = 90, idle.megabytes_per_s = 80;
  for (const auto& better : {better_measure(busy, idle), better_measure(idle, busy)}) {
    CHECK(better.round_trip_us == 90);
    CHECK(better.megabytes_per_s == 900);
    CHECK(better.resent_share == 0);
  }
  idle.problem = "it did not answer";
  CHECK(better_measure(busy, idle).round_trip_us == 21000);
}

TEST_CASE("a host whose ways are slow comes first") {
  CheckInput input = measured_hosts();
  way(input, 0).megabytes_per_s = 110;
  way(input, 1).megabytes_per_s = 11.5;
  CHECK(verdicts_of(input) == PathVerdicts{"slow-way: n2 n1 n3"});
  CHECK(fact_of(input) ==
        "n1 to n2: 110 MB/s (usual here: 1150 MB/s), n2 to n3: 12 MB/s (usual "
        "here: 1150 MB/s)");
  CHECK(judge(input).can_start());
}

TEST_CASE("a network that is slow throughout is told") {
  CheckInput input = measured_hosts();
  for (const std::size_t from : {0, 1, 2, 3}) way(input, from).megabytes_per_s = 11;
  CHECK(verdicts_of(input) == PathVerdicts{"slow-way: n1 n2 n3 n4"});
  CHECK(fact_of(input).find("n1 to n2: 11 MB/s, n2 to n3: 11 MB/s") == 0);
}

TEST_CASE("the fix names the interface that is in use") {
  CheckInput input = measured_hosts();
  way(input, 1).megabytes_per_s = 11;
  input.hosts[1].told->network.interfaces = {{"lan7", input.hosts[1].facts->addresses, 1500, 100}};
  CHECK(judge(input).findings.at(0).fix.find("ssh n2 ethtool lan7;") != std::string::npos);
  input = measured_hosts();
  way(input, 1).is_stuck = true;
  input.hosts[1].told->network.interfaces = {{"lan7", input.hosts[1].facts->addresses, 1500, 100}};
  CHECK(judge(input).findings.at(0).fix.find("dev lan7 mtu") != std::string::npos);
}

TEST_CASE("long ways, lost packets and packets that are too large are told with their figures") {
  CheckInput input = measured_hosts();
  way(input, 2).round_trip_us = 100200;
  CHECK(verdicts_of(input) == PathVerdicts{"long-way: n3 n4"});
  CHECK(fact_of(input) == "n3 to n4: 0.1 s there and back");
  input = measured_hosts();
  way(input, 2).resent_share = 0.2;
  CHECK(verdicts_of(input) == PathVerdicts{"packets-lost: n3 n4"});
  CHECK(fact_of(input) == "n3 to n4: 20 % of the segments were sent again");
  input = measured_hosts();
  way(input, 2).is_stuck = true;
  way(input, 2).megabytes_per_s = 0;
  CHECK(verdicts_of(input) == PathVerdicts{"full-packets-lost: n3 n4"});
}

TEST_CASE("a way that could not be measured is told as such") {
  CheckInput input = measured_hosts();
  way(input, 1).problem = "exchange small messages: timed out";
  CHECK(verdicts_of(input).empty());
  REQUIRE(judge(input).not_probed.size() == 1);
  CHECK(judge(input).not_probed[0].reason == "n2 to n3: exchange small messages: timed out");
}

TEST_CASE("a way that loses so many packets that it could not be measured in time is told") {
  CheckInput input = measured_hosts();
  way(input, 2).problem = "send 1 MiB: it had not arrived within 2 s";
  way(input, 2).resent_share = 0.3;
  way(input, 2).round_trip_us = way(input, 2).megabytes_per_s = 0;
  CHECK(verdicts_of(input) == PathVerdicts{"packets-lost: n3 n4"});
  CHECK(judge(input).not_probed.empty());
  const std::vector<std::size_t> doubtful = doubtful_ways(input);
  REQUIRE(doubtful.size() == 1);
  CHECK(input.pairs[doubtful[0]].from == 2);
  wire::PairMeasure again;
  again.round_trip_us = 90, again.megabytes_per_s = 900;
  const wire::PairMeasure better = better_measure(way(input, 2), again);
  CHECK(better.problem.empty());
  CHECK(better.resent_share == 0);
  CHECK(better.round_trip_us == 90);
}

CheckInput hosts_with_interfaces() {
  CheckInput input = healthy_hosts(3);
  for (CheckedHost& host : input.hosts) {
    wire::InterfaceFacts one{"eth" + std::to_string(host.name.back() - '0'), host.facts->addresses,
                             1500, 10000, true};
    host.told->network.interfaces = {one, {"docker0", {"172.17.0.1"}, 1400, 0, true}};
    host.told->network.rdma = {{"mlx5_0", 1, "ACTIVE", "LinkUp"},
                               {"mlx5_1", 1, "DOWN", "Disabled"}};
  }
  return input;
}

TEST_CASE("the interface by which hosts are reached has the others' MTU, or is told") {
  CheckInput input = hosts_with_interfaces();
  CHECK(verdicts_of(input).empty());
  input.hosts[1].told->network.interfaces[0].mtu = 1400;
  CHECK(verdicts_of(input) == PathVerdicts{"mtu-differs: n2"});
  const Finding finding = judge(input).findings.at(0);
  CHECK(finding.fact == "n[1,3]: MTU 1500, n2: MTU 1400");
  CHECK(finding.fix == "ssh n2 sudo ip link set dev eth2 mtu 1500");
}

TEST_CASE("an RDMA port that is down on few hosts is told, and one that is down on all is not") {
  CheckInput input = hosts_with_interfaces();
  input.hosts[2].told->network.rdma[0] = {"mlx5_0", 1, "DOWN", "Polling"};
  CHECK(verdicts_of(input) == PathVerdicts{"rdma-port-down: n3"});
  CHECK(fact_of(input) == "n3: mlx5_0 port 1 is DOWN, Polling");
}

}  // namespace
}  // namespace hv::launcher
