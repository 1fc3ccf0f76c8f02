// Between hosts, ring: each host sends to the next one only, 2 (H-1) times 1/H of the share.
// SPDX-License-Identifier: Apache-2.0
//
// The share is cut into H chunks. In step s of the first H-1, host i sends chunk i-s to host i+1
// and folds chunk i-s-1, which comes from host i-1, so that chunk c has been folded over all hosts
// when it reaches host c-1. In the other H-1 steps the finished chunks go round once more
// (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations"). No
// host can send fewer bytes, and each talks to two neighbours only. But chunk c is folded in the
// order c, c+1, ...: the bits depend on where an element lies in the share.
#include "runtime/collective/cross/cross_schedule.h"

namespace hv::runtime {

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

}  // namespace hv::runtime
