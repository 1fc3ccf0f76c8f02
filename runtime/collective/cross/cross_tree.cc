// Between hosts, a fixed tree: everything is folded on the way to host 0, and the result handed
// down the same way.
// SPDX-License-Identifier: Apache-2.0
//
// A binomial tree over P = 2^k hosts (the extra ones fold in before, see cross_schedule.h): hosts
// from P/2 on send to the one P/2 below, then those from P/4 on, and so on to host 0. 2 log2 H
// steps, and the fewest messages of all: 2 (H-1) for the whole job. The bits are those of halving
// and doubling.
#include "runtime/collective/cross/cross_schedule.h"

namespace hv::runtime {

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
