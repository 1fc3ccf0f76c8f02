// What of NCCL's interface is called: its types, numbers and functions, so that no header of it is
// needed. A unit test compares these with nccl.h where that is installed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <climits>
#include <cstddef>

#include "runtime/device/cuda/driver_abi.h"

namespace hv::nccl {

// ncclResult_t
constexpr int kSuccess = 0;
constexpr int kUnhandledCudaError = 1;
constexpr int kSystemError = 2;
constexpr int kInvalidArgument = 4;
constexpr int kInvalidUsage = 5;
constexpr int kRemoteError = 6;
constexpr int kInProgress = 7;

// ncclRedOp_t
constexpr int kSum = 0;
constexpr int kProduct = 1;
constexpr int kMax = 2;
constexpr int kMin = 3;
constexpr int kAverage = 4;

// ncclDataType_t
constexpr int kInt8 = 0;
constexpr int kUint8 = 1;
constexpr int kInt32 = 2;
constexpr int kUint32 = 3;
constexpr int kInt64 = 4;
constexpr int kUint64 = 5;
constexpr int kFloat16 = 6;
constexpr int kFloat32 = 7;
constexpr int kFloat64 = 8;
constexpr int kBfloat16 = 9;
constexpr int kFloat8E4m3 = 10;  // since 2.24
constexpr int kFloat8E5m2 = 11;

constexpr int kScalarOnDevice = 0;          // ncclScalarDevice
constexpr int kScalarImmediate = 1;         // ncclScalarHostImmediate
constexpr int kSymmetricWindow = 1;         // NCCL_WIN_COLL_SYMMETRIC
constexpr unsigned kMagic = 0xcafebeef;     // NCCL_API_MAGIC
constexpr int kUnset = INT_MIN;             // NCCL_CONFIG_UNDEF_INT
constexpr unsigned kConfigVersion = 21800;  // of the fields below

using Comm = struct CommState*;  // the library knows what it points to
using Window = struct WindowState*;

struct UniqueId {
  char bytes[128];
};

// ncclConfig_t as of 2.18: later ones have more fields behind these, and take a shorter one by its
// size and version.
struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = kMagic;
  unsigned version = kConfigVersion;
  int blocking = kUnset;
  int cga_cluster_size = kUnset;
  int min_ctas = kUnset;
  int max_ctas = kUnset;
  const char* net_name = nullptr;
  int split_share = kUnset;
};

// ONE(what it is called here, its exported name, its parameters). All return an ncclResult_t.
#define HV_NCCL_FUNCTIONS(ONE)                                                                   \
  ONE(version, ncclGetVersion, (int* version))                                                   \
  ONE(make_unique_id, ncclGetUniqueId, (UniqueId * id))                                          \
  ONE(init_rank, ncclCommInitRankConfig,                                                         \
      (Comm * comm, int ranks, UniqueId id, int rank, Config* config))                           \
  ONE(finalize, ncclCommFinalize, (Comm comm))                                                   \
  ONE(destroy, ncclCommDestroy, (Comm comm))                                                     \
  ONE(abort, ncclCommAbort, (Comm comm))                                                         \
  ONE(async_error, ncclCommGetAsyncError, (Comm comm, int* error))                               \
  ONE(make_premultiplied_sum, ncclRedOpCreatePreMulSum,                                          \
      (int* reduction, void* scalar, int type, int residence, Comm comm))                        \
  ONE(destroy_reduction, ncclRedOpDestroy, (int reduction, Comm comm))                           \
  ONE(broadcast, ncclBroadcast,                                                                  \
      (const void* from, void* to, std::size_t count, int type, int root, Comm comm,             \
       cuda::Stream stream))                                                                     \
  ONE(allreduce, ncclAllReduce,                                                                  \
      (const void* from, void* to, std::size_t count, int type, int reduction, Comm comm,        \
       cuda::Stream stream))                                                                     \
  ONE(reducescatter, ncclReduceScatter,                                                          \
      (const void* from, void* to, std::size_t count, int type, int reduction, Comm comm,        \
       cuda::Stream stream))                                                                     \
  ONE(allgather, ncclAllGather,                                                                  \
      (const void* from, void* to, std::size_t count, int type, Comm comm, cuda::Stream stream)) \
  ONE(send, ncclSend,                                                                            \
      (const void* from, std::size_t count, int type, int peer, Comm comm, cuda::Stream stream)) \
  ONE(receive, ncclRecv,                                                                         \
      (void* to, std::size_t count, int type, int peer, Comm comm, cuda::Stream stream))         \
  ONE(group_start, ncclGroupStart, ())                                                           \
  ONE(group_end, ncclGroupEnd, ())

// Of newer versions; nullptr where the library has none.
#define HV_NCCL_NEWER_FUNCTIONS(ONE)                                            \
  ONE(allocate, ncclMemAlloc, (void** address, std::size_t bytes))              \
  ONE(free, ncclMemFree, (void* address))                                       \
  ONE(register_buffer, ncclCommRegister,                                        \
      (const Comm comm, void* address, std::size_t bytes, void** handle))       \
  ONE(deregister_buffer, ncclCommDeregister, (const Comm comm, void* handle))   \
  ONE(register_window, ncclCommWindowRegister,                                  \
      (Comm comm, void* address, std::size_t bytes, Window* window, int flags)) \
  ONE(deregister_window, ncclCommWindowDeregister, (Comm comm, Window window))  \
  ONE(revoke, ncclCommRevoke, (Comm comm, int flags))                           \
  ONE(shrink, ncclCommShrink,                                                   \
      (Comm comm, int* excluded, int count, Comm* smaller, Config* config, int flags))

}  // namespace hv::nccl
