// The kernels as CUDA's driver loads them, embedded into this library.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace hv::cuda {

// Machine code of all generations of GPUs that this build knows; nullptr: it was built without
// CUDA's compiler.
const void* fatbin_image();
// Text that the driver compiles, on cards from compute capability 7.5 on.
const char* ptx_image();

}  // namespace hv::cuda
