// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/patience.h"

namespace hv::runtime {
PatienceConfig patience_for(const Topology& topology) {
  PatienceConfig patience;
  if (static_cast<int>(topology.local_ranks.size()) > topology.usable_cores)
    patience.spin = Duration::zero();
  return patience;
}

}  // namespace hv::runtime
