// Tests of who is charged for how much waiting.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/negotiation/straggler.h"

#include <doctest/doctest.h>

#include "tests/unit/engine/negotiation_network.h"

using namespace hv;
using namespace hv::runtime;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

const TimePoint kStragglerStart = TimePoint{} + std::chrono::hours(1);

}  // namespace

TEST_CASE("waits that overlap count once, for the rank that ended them") {
  WaitLedger ledger;
  ledger.charge(3, kStragglerStart, kStragglerStart + seconds(10));
  ledger.charge(3, kStragglerStart + seconds(1), kStragglerStart + seconds(10));  // with it
  ledger.charge(5, kStragglerStart + seconds(8),
                kStragglerStart + seconds(12));  // two of it are charged already
  ledger.charge(5, kStragglerStart + seconds(20), kStragglerStart + seconds(20));
  CHECK(ledger.total() == seconds(12));
  CHECK(ledger.by_rank().at(3).waited == seconds(10));
  CHECK(ledger.by_rank().at(3).times == 1);
  CHECK(ledger.by_rank().at(5).waited == seconds(2));
}

TEST_CASE("the latest rank of any level is charged at the root") {
  for (const int late : {0, 1, 2, 4, 5}) {
    CAPTURE(late);
    Network network({2, 3, 1}, {});
    for (int round = 0; round < 3; ++round) {  // described, then by number
      for (int rank = 0; rank < 6; ++rank)
        if (rank != late)
          network.nodes[static_cast<std::size_t>(rank)]->submit(tensor("w"), network.time);
      network.settle();
      network.time += milliseconds(500);
      network.nodes[static_cast<std::size_t>(late)]->submit(tensor("w"), network.time);
      network.settle();
    }
    const WaitLedger& ledger = network.nodes[0]->waits();
    CHECK(ledger.total() == milliseconds(1500));
    REQUIRE(ledger.by_rank().size() == 1);
    CHECK(ledger.by_rank().begin()->first == static_cast<std::uint32_t>(late));
    CHECK(ledger.by_rank().begin()->second.times == 3);
  }
}

TEST_CASE("a wait inside another host counts although the others came after its first rank") {
  Network network({1, 2}, {});
  network.nodes[1]->submit(tensor("w"), network.time);  // rank 2 of the same host is late
  network.settle();
  network.time += milliseconds(300);
  network.nodes[0]->submit(tensor("w"), network.time);
  network.settle();
  network.time += milliseconds(100);
  network.nodes[2]->submit(tensor("w"), network.time);
  network.settle();
  CHECK(network.nodes[0]->waits().total() == milliseconds(400));
  CHECK(network.nodes[0]->waits().by_rank().at(2).waited == milliseconds(400));
}

TEST_CASE("who has joined is nobody that others wait for") {
  Network network({3}, {});
  network.nodes[1]->submit(tensor("w"), network.time);
  network.nodes[0]->submit(tensor("w"), network.time);
  network.settle();
  network.time += seconds(5);
  network.nodes[2]->join(network.time);
  network.settle();
  CHECK(network.nodes[0]->waits().total() == seconds(0));
}

TEST_CASE("a peer's wait is bounded") {
  Arrivals arrivals(0);
  arrivals.child_says(1, {UINT64_MAX, 1});
  arrivals.completed(1, kStragglerStart, kStragglerStart);
  CHECK(arrivals.ledger().total() <= seconds(1'000'000));
}

TEST_CASE("it is told each period what came in it, and at the end what is worth it") {
  const std::vector<int> members{10, 11, 12, 13, 14};
  WaitLedger ledger;
  StragglerReport report{seconds(60)};
  CHECK(report.periodic(ledger, members, kStragglerStart).empty());
  ledger.charge(3, kStragglerStart, kStragglerStart + seconds(30));
  CHECK(report.periodic(ledger, members, kStragglerStart + seconds(59)).empty());
  CHECK(report.periodic(ledger, members, kStragglerStart + seconds(60)) ==
        "tensors waited 30 s of 60 s for the last rank to have them: rank 13 30 s (1 time)");
  CHECK(
      report.periodic(ledger, members, kStragglerStart + seconds(120)).empty());  // nobody was late
  for (std::uint32_t rank = 0; rank < 5; ++rank) {
    const TimePoint begin = kStragglerStart + seconds(130 + 10 * rank);
    ledger.charge(rank, begin, begin + seconds(1 + rank));
  }
  CHECK(report.periodic(ledger, members, kStragglerStart + seconds(180)) ==
        "tensors waited 15 s of 60 s for the last rank to have them: rank 14 5 s (1 time), "
        "rank 13 4 s (1 time), rank 12 3 s (1 time), others 3 s");
  CHECK(report.final(ledger, members).find("tensors waited 45 s of 3 min") == 0);
  report.periodic(ledger, members, kStragglerStart + seconds(1000));
  CHECK(report.final(ledger, members).empty());
  StragglerReport never{Duration::zero()};
  never.periodic(ledger, members, kStragglerStart);
  CHECK(never.next_look() == TimePoint::max());
  CHECK(never.periodic(ledger, members, kStragglerStart + seconds(1000)).empty());
  WaitLedger short_one;
  short_one.charge(1, kStragglerStart, kStragglerStart + seconds(4));
  StragglerReport brief{Duration::zero()};
  brief.periodic(short_one, members, kStragglerStart);
  brief.periodic(short_one, members, kStragglerStart + seconds(5));
  CHECK(brief.final(short_one, members).empty());
}

TEST_CASE("a wait longer than a period is charged as it goes on") {
  Network network({2, 1}, {});
  network.nodes[0]->submit(tensor("w"), network.time);
  network.nodes[2]->submit(tensor("w"), network.time);
  network.settle();
  StragglerReport report{seconds(60)};
  const auto told = [&](seconds later) {
    network.time += later;
    if (report.is_due(network.time)) network.nodes[0]->charge_open_waits(network.time);
    return report.periodic(network.nodes[0]->waits(), {}, network.time);
  };
  CHECK(told(seconds(0)).empty());
  CHECK(report.next_look() == network.time + seconds(60));
  const std::string words = "tensors waited 60 s of 60 s for the last rank to have them: rank 1 ";
  CHECK(told(seconds(60)) == words + "60 s (not there yet)");
  CHECK(told(seconds(60)) == words + "60 s (not there yet)");
  network.time += seconds(30);
  network.nodes[1]->submit(tensor("w"), network.time);
  network.settle();
  CHECK(told(seconds(30)) ==
        "tensors waited 30 s of 60 s for the last rank to have them: rank 1 30 s (1 time)");
  CHECK(network.nodes[0]->waits().total() == seconds(150));
  CHECK(network.nodes[0]->waits().by_rank().size() == 1);
}

TEST_CASE("a young wait for one rank does not swallow an older one for several") {
  Network network({4}, {});
  network.nodes[0]->submit(tensor("old"), network.time);
  network.nodes[1]->submit(tensor("young"), network.time);
  network.nodes[2]->submit(tensor("young"), network.time);
  network.settle();
  const TimePoint begun = network.time;
  network.time += seconds(3000);
  network.nodes[0]->submit(tensor("young"), network.time);  // now only rank 3 misses that
  network.settle();
  network.nodes[0]->charge_open_waits(network.time + seconds(1));
  network.time += seconds(2);
  for (const int rank : {1, 2, 3}) network.nodes[rank]->submit(tensor("old"), network.time);
  network.settle();
  CHECK(network.nodes[0]->waits().total() == network.time - begun);
}

TEST_CASE(
    "of a wait for several ranks nobody is charged before its end, and the time it took is told") {
  Network network({3}, {});
  network.nodes[0]->submit(tensor("w"), network.time);
  network.settle();
  network.nodes[0]->charge_open_waits(network.time + seconds(60));
  CHECK(network.nodes[0]->waits().total() == seconds(0));
  const std::vector<int> members{0, 1, 2, 3};
  WaitLedger ledger;
  StragglerReport report{seconds(60)};
  for (int minute = 0; minute < 3; ++minute)
    CHECK(report.periodic(ledger, members, kStragglerStart + seconds(60 * minute)).empty());
  ledger.charge(3, kStragglerStart + seconds(10), kStragglerStart + seconds(170));
  CHECK(report.periodic(ledger, members, kStragglerStart + seconds(180)) ==
        "tensors waited 2 min 40 s of 3 min for the last rank to have them: rank 3 2 min 40 s (1 "
        "time)");
}
