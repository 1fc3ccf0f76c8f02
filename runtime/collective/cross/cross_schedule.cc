// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/cross/cross_schedule.h"

#include <bit>

namespace hv::runtime {

PowerOfTwo::PowerOfTwo(int hosts, int me)
    : core(static_cast<int>(std::bit_floor(static_cast<unsigned>(hosts)))),
      hosts_(hosts),
      me_(me) {}

int PowerOfTwo::partner() const {
  if (is_extra()) return me_ - core;
  return me_ + core < hosts_ ? me_ + core : -1;
}

void PowerOfTwo::fold_extras(std::size_t bytes, CrossSchedule* schedule) const {
  if (partner() < 0) return;
  const Range all{0, bytes};
  if (is_extra()) {
    schedule->push_back({.to = partner(), .out = all});
  } else {
    schedule->push_back({.from = partner(), .in = all, .arrival = CrossStep::Arrival::kFold});
  }
}

void PowerOfTwo::pay_back_extras(std::size_t bytes, CrossSchedule* schedule) const {
  if (partner() < 0) return;
  const Range all{0, bytes};
  if (is_extra()) {
    schedule->push_back({.from = partner(), .in = all});
  } else {
    schedule->push_back({.to = partner(), .out = all});
  }
}

// Recursive doubling: log2 H steps, the whole share in each.
// Among P = 2^k hosts (the extra ones fold in before, see PowerOfTwo): with the host P/2
// away, then P/4, ... each exchanges all that it has and folds what comes. For shares so small that
// only the number of steps counts. The bits are those of halving and of the tree.
CrossSchedule doubling_schedule(int hosts, int me, std::size_t bytes) {
  const PowerOfTwo pairs(hosts, me);
  const Range all{0, bytes};
  CrossSchedule schedule;
  pairs.fold_extras(bytes, &schedule);
  for (int distance = pairs.core / 2; distance > 0 && !pairs.is_extra(); distance /= 2)
    schedule.push_back({me ^ distance, all, me ^ distance, all,
                        distance == 1 ? CrossStep::Arrival::kFinish : CrossStep::Arrival::kFold});
  pairs.pay_back_extras(bytes, &schedule);
  return schedule;
}

// Recursive halving and doubling: 2 log2 H steps, and the ring's bytes.
// Among P = 2^k hosts (the extra ones fold in before, see PowerOfTwo): with the host P/2 away
// each exchanges halves of the share, keeping and folding one; then with the host P/4 away halves
// of that half, and so on: a reduce-scatter. The same way back gathers what was scattered
// (Rabenseifner, "Optimization of collective reduction operations"). Every element is folded over
// the same tree, hosts P/2 away first, wherever it lies: the bits are those of doubling and of the
// tree.
CrossSchedule halving_schedule(int hosts, int me, std::size_t bytes) {
  const PowerOfTwo pairs(hosts, me);
  // From chunk `first` on, `count` of the P chunks.
  const auto chunks = [&](int first, int count) {
    const Range begin = cut(bytes, pairs.core, first),
                end = cut(bytes, pairs.core, first + count - 1);
    return Range{begin.begin, end.begin + end.size - begin.begin};
  };
  CrossSchedule schedule;
  pairs.fold_extras(bytes, &schedule);
  if (!pairs.is_extra()) {
    int first = 0;  // of the 2 * distance chunks that this host still has
    for (int distance = pairs.core / 2; distance > 0; distance /= 2) {
      const int kept = (me & distance) != 0 ? first + distance : first;
      const int given = (me & distance) != 0 ? first : first + distance;
      schedule.push_back({me ^ distance, chunks(given, distance), me ^ distance,
                          chunks(kept, distance),
                          distance == 1 ? CrossStep::Arrival::kFinish : CrossStep::Arrival::kFold});
      first = kept;
    }
    for (int distance = 1; distance < pairs.core; distance *= 2) {
      const int theirs = first ^ distance;
      schedule.push_back({me ^ distance, chunks(first, distance), me ^ distance,
                          chunks(theirs, distance), CrossStep::Arrival::kCopy});
      first = first < theirs ? first : theirs;
    }
  }
  pairs.pay_back_extras(bytes, &schedule);
  return schedule;
}

// Ring: each host sends to the next one only, 2 (H-1) times 1/H of the share.
// The share is cut into H chunks. In step s of the first H-1, host i sends chunk i-s to host i+1
// and folds chunk i-s-1, which comes from host i-1, so that chunk c has been folded over all hosts
// when it reaches host c-1. In the other H-1 steps the finished chunks go round once more
// (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations"). No
// host can send fewer bytes, and each talks to two neighbours only. But chunk c is folded in the
// order c, c+1, ...: the bits depend on where an element lies in the share.
CrossSchedule ring_schedule(int hosts, int me, std::size_t bytes) {
  const auto chunk = [=](int index) { return cut(bytes, hosts, (index % hosts + hosts) % hosts); };
  const int next = (me + 1) % hosts, previous = (me + hosts - 1) % hosts;
  CrossSchedule schedule;
  for (int s = 0; s < hosts - 1; ++s)
    schedule.push_back({next, chunk(me - s), previous, chunk(me - s - 1),
                        s == hosts - 2 ? CrossStep::Arrival::kFinish : CrossStep::Arrival::kFold});
  for (int s = 0; s < hosts - 1; ++s)
    schedule.push_back(
        {next, chunk(me + 1 - s), previous, chunk(me - s), CrossStep::Arrival::kCopy});
  return schedule;
}

// A fixed tree: everything is folded on the way to host 0, and the result handed
// down the same way.
// A binomial tree over P = 2^k hosts (the extra ones fold in before, see PowerOfTwo): hosts
// from P/2 on send to the one P/2 below, then those from P/4 on, and so on to host 0. 2 log2 H
// steps, and the fewest messages of all: 2 (H-1) for the whole job. The bits are those of halving
// and doubling.
CrossSchedule tree_schedule(int hosts, int me, std::size_t bytes) {
  const PowerOfTwo pairs(hosts, me);
  const Range all{0, bytes};
  CrossSchedule schedule;
  pairs.fold_extras(bytes, &schedule);
  for (int distance = pairs.core / 2; distance > 0; distance /= 2) {
    if (me >= distance && me < 2 * distance) schedule.push_back({.to = me - distance, .out = all});
    if (me < distance)
      schedule.push_back(
          {.from = me + distance,
           .in = all,
           .arrival = distance == 1 ? CrossStep::Arrival::kFinish : CrossStep::Arrival::kFold});
  }
  for (int distance = 1; distance < pairs.core; distance *= 2) {
    if (me < distance) schedule.push_back({.to = me + distance, .out = all});
    if (me >= distance && me < 2 * distance) schedule.push_back({.from = me - distance, .in = all});
  }
  pairs.pay_back_extras(bytes, &schedule);
  return schedule;
}

}  // namespace hv::runtime
