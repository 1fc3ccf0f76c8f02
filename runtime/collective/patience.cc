// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/patience.h"

namespace hv::runtime {
namespace {

int usable_cores() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

}  // namespace

PatienceConfig patience_for(int ranks_here) {
  PatienceConfig patience;
  if (ranks_here > usable_cores()) patience.spin = Duration::zero();
  return patience;
}

}  // namespace hv::runtime
