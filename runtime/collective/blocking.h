// Drives a collective to its end in the calling thread: how to wait without wasting a core that a
// peer needs. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/collective/collective.h"
#include "runtime/transport/fabric.h"

namespace hv::runtime {

// Spins while that is cheapest, then yields, then says that it is time to sleep. While every rank
// of the host has a core of its own: pause instructions first. With fewer cores than ranks a spin
// would take the core that the awaited peer needs, so it yields from the start, for kYield.
class SpinPolicy {
 public:
  // ranks_here: ranks on this host, all of which may be busy.
  explicit SpinPolicy(int ranks_here);
  // After a fruitless look. False: sleep on the doorbell now.
  bool keep_looking();
  // Something happened.
  void reset() { looks_ = 0; }

 private:
  bool may_spin_;
  int looks_ = 0;
  TimePoint yielding_since_{};
};

// Advances and sleeps until the collective is done or has failed.
Status run_blocking(Collective& collective, Fabric& fabric);

}  // namespace hv::runtime
