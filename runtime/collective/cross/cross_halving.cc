// Between hosts, recursive halving and doubling: 2 log2 H steps, and the ring's bytes.
// SPDX-License-Identifier: Apache-2.0
//
// Among P = 2^k hosts (the extra ones fold in before, see cross_schedule.h): with the host P/2 away
// each exchanges halves of the share, keeping and folding one; then with the host P/4 away halves
// of that half, and so on: a reduce-scatter. The same way back gathers what was scattered
// (Rabenseifner, "Optimization of collective reduction operations"). Every element is folded over
// the same tree, hosts P/2 away first, wherever it lies: the bits are those of doubling and of the
// tree.
#include "runtime/collective/cross/cross_schedule.h"

namespace hv::runtime {

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

}  // namespace hv::runtime
