// Between hosts, recursive doubling: log2 H steps, the whole share in each.
// SPDX-License-Identifier: Apache-2.0
//
// Among P = 2^k hosts (the extra ones fold in before, see cross_schedule.h): with the host P/2
// away, then P/4, ... each exchanges all that it has and folds what comes. For shares so small that
// only the number of steps counts. The bits are those of halving and of the tree.
#include "runtime/collective/cross/cross_schedule.h"

namespace hv::runtime {

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

}  // namespace hv::runtime
