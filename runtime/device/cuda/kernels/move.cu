// The kernels, as CUDA's driver finds them in the module: move.h's bodies by name.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/kernels/kernel_list.h"
#include "runtime/device/cuda/kernels/move.h"

using namespace hv::cuda;

#define HV_PLACE \
  { blockIdx.x, gridDim.x, threadIdx.x, blockDim.x }

#define HV_ONE(from, to, From, To, from_name, to_name)         \
  extern "C" __global__ void __launch_bounds__(kBlockThreads)  \
      hvrun_##from_name##_to_##to_name(const StripList list) { \
    move_strips<Conversion<From, To>>(list, HV_PLACE);         \
  }
HV_MOVE_KERNELS(HV_ONE)
#undef HV_ONE

extern "C" __global__ void __launch_bounds__(kBlockThreads) hvrun_copy(const StripList list) {
  move_strips<Copy>(list, HV_PLACE);
}
