// Holds what is declared of NCCL's interface against its own header, where that is installed.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/nccl/nccl_abi.h"

#include <doctest/doctest.h>

#if __has_include(<nccl.h>)
#include <nccl.h>

#include <cstddef>

#include "tests/unit/called_alike.h"

using namespace hv;
using namespace hv::nccl;

TEST_CASE("NCCL's functions are called as its header declares them") {
#define HV_ONE(here, exported, parameters)                                          \
  {                                                                                 \
    const bool is_alike =                                                           \
        hv::CalledAlike<ncclResult_t, decltype(::exported), int parameters>::value; \
    CHECK_MESSAGE(is_alike, #exported);                                             \
  }
  HV_NCCL_FUNCTIONS(HV_ONE)
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 29, 0)
  HV_NCCL_NEWER_FUNCTIONS(HV_ONE)
#endif
#undef HV_ONE
}

TEST_CASE("the numbers and types of NCCL are those of its header") {
  const long long numbers[][2] = {{kSuccess, ncclSuccess},
                                  {kUnhandledCudaError, ncclUnhandledCudaError},
                                  {kSystemError, ncclSystemError},
                                  {kInvalidArgument, ncclInvalidArgument},
                                  {kInvalidUsage, ncclInvalidUsage},
                                  {kRemoteError, ncclRemoteError},
                                  {kInProgress, ncclInProgress},
                                  {kSum, ncclSum},
                                  {kProduct, ncclProd},
                                  {kMax, ncclMax},
                                  {kMin, ncclMin},
                                  {kAverage, ncclAvg},
                                  {kInt8, ncclInt8},
                                  {kUint8, ncclUint8},
                                  {kInt32, ncclInt32},
                                  {kUint32, ncclUint32},
                                  {kInt64, ncclInt64},
                                  {kUint64, ncclUint64},
                                  {kFloat16, ncclFloat16},
                                  {kFloat32, ncclFloat32},
                                  {kFloat64, ncclFloat64},
                                  {kBfloat16, ncclBfloat16},
                                  {kScalarOnDevice, ncclScalarDevice},
                                  {kScalarImmediate, ncclScalarHostImmediate},
                                  {kUnset, NCCL_CONFIG_UNDEF_INT},
                                  {kConfigVersion, NCCL_VERSION(2, 18, 0)}};
  for (const auto& [ours, own] : numbers) CHECK(ours == own);
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 24, 0)
  CHECK(kFloat8E4m3 == static_cast<int>(ncclFloat8e4m3));
  CHECK(kFloat8E5m2 == static_cast<int>(ncclFloat8e5m2));
#endif
  CHECK(sizeof(Comm) == sizeof(ncclComm_t));
  CHECK(sizeof(UniqueId) == sizeof(ncclUniqueId));
  CHECK(sizeof(Config) <= sizeof(ncclConfig_t));
  CHECK(offsetof(Config, magic) == offsetof(ncclConfig_t, magic));
  CHECK(offsetof(Config, blocking) == offsetof(ncclConfig_t, blocking));
  CHECK(offsetof(Config, min_ctas) == offsetof(ncclConfig_t, minCTAs));
  CHECK(offsetof(Config, max_ctas) == offsetof(ncclConfig_t, maxCTAs));
  CHECK(offsetof(Config, split_share) == offsetof(ncclConfig_t, splitShare));
  const ncclConfig_t fresh = NCCL_CONFIG_INITIALIZER;
  CHECK(fresh.magic == kMagic);
}

#endif
