// HV_ALSO_ON_GPU: before a function that CUDA's compiler is to make for GPUs, too.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifdef __CUDACC__
#define HV_ALSO_ON_GPU __host__ __device__
#else
#define HV_ALSO_ON_GPU
#endif
