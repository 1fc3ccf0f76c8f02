// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/cuda/faults.h"

namespace hv::fake {

// Never destroyed: streams outlive main().
Faults& Faults::of_process() {
  static Faults* const faults = new Faults("CUDA");
  return *faults;
}

}  // namespace hv::fake
