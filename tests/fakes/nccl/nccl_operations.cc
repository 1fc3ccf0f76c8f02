// The operations of the stand-in for NCCL, as they are called.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <string>

#include "tests/fakes/nccl/group.h"
#include "tests/fakes/nccl/handles.h"
#include "tests/fakes/nccl/outside.h"

namespace hv::nccl {
namespace {

using fake::Call;
using fake::Communicator;
using fake::find;
using fake::Group;
using fake::Operation;

// As NCCL a refused call leaves the reason at a communicator that does not block.
int refuse_call(const std::shared_ptr<Communicator>& communicator, int result,
                const std::string& why) {
  if (!communicator->is_blocking() && result != kSuccess) communicator->fail(result, why);
  return Group::of_thread().refuse_call(result);
}

struct Buffers {
  bool has_from = true;
  bool has_to = true;
};

int add(const char* function, Comm comm, Operation operation, Buffers needs) {
  bool hangs = false;
  if (const int refused = fake::enter(function, &hangs); refused != kSuccess)
    return Group::of_thread().refuse_call(refused);
  const auto communicator = find(comm);
  if (const int state = communicator->check_launchable(); state != kSuccess)
    return refuse_call(communicator, state, communicator->last_error());
  const bool is_empty = operation.count == 0;
  if (fake::element_bytes(operation.type) == 0 || operation.peer < 0 ||
      operation.peer >= communicator->ranks() ||
      (!is_empty && ((needs.has_from && operation.from == nullptr) ||
                     (needs.has_to && operation.to == nullptr))))
    return refuse_call(communicator, kInvalidArgument,
                       std::string(function) + ": a type, a rank or a buffer is none");
  char uuid[16];
  if (operation.stream == nullptr && fake::cuda_functions().device(uuid) < 0)
    return refuse_call(communicator, kUnhandledCudaError, "no context is current");
  if (is_empty && operation.call != Call::kSendReceive) return kSuccess;
  operation.hangs = hangs;
  if (operation.call != Call::kSendReceive)
    operation.place = fake::window_place(comm, operation.from, operation.to);
  return Group::of_thread().add(communicator, operation);
}

// As NCCL, those of 8-bit floats from 2.24 on, and on cards of 9.0 and newer.
bool can_reduce(int type) {
  if (type != kFloat8E4m3 && type != kFloat8E5m2) return fake::can_reduce(type);
  char uuid[16];
  int major = 0;
  const int device = fake::cuda_functions().device(uuid);
  return fake::version() >= 22400 && device >= 0 &&
         fake::cuda_functions().attribute(&major, cuda::kComputeCapabilityMajor, device) ==
             cuda::kSuccess &&
         major >= 9;
}

int add_reduction(const char* function, Comm comm, Operation operation, int reduction) {
  const auto communicator = find(comm);
  operation.reduction.kind = reduction;
  if (!can_reduce(operation.type) || reduction < 0 ||
      (reduction > kAverage &&
       !communicator->find_reduction(reduction, operation.type, &operation.reduction)))
    return refuse_call(communicator, kInvalidArgument,
                       std::string(function) + ": there is no such reduction of that type");
  return add(function, comm, operation, {});
}

}  // namespace

int ncclRedOpCreatePreMulSum(int* reduction, void* scalar, int type, int residence, Comm comm) {
  HV_ENTER();
  const auto communicator = find(comm);
  if (residence != kScalarImmediate || !can_reduce(type)) return kInvalidArgument;
  fake::Reduction made;
  made.kind = fake::kPremultipliedSum;
  std::memcpy(made.scalar.data(), scalar, fake::element_bytes(type));
  *reduction = communicator->make_reduction(made, type);
  return kSuccess;
}

int ncclRedOpDestroy(int reduction, Comm comm) {
  HV_ENTER();
  return find(comm)->destroy_reduction(reduction);
}

int ncclBroadcast(const void* from, void* to, std::size_t count, int type, int root, Comm comm,
                  cuda::Stream stream) {
  const bool is_root = find(comm)->rank() == root;
  return add(__func__, comm, {Call::kBroadcast, from, to, count, type, {}, root, stream, false},
             {.has_from = is_root});
}

int ncclAllReduce(const void* from, void* to, std::size_t count, int type, int reduction, Comm comm,
                  cuda::Stream stream) {
  return add_reduction(__func__, comm,
                       {Call::kAllReduce, from, to, count, type, {}, 0, stream, false}, reduction);
}

int ncclReduceScatter(const void* from, void* to, std::size_t count, int type, int reduction,
                      Comm comm, cuda::Stream stream) {
  return add_reduction(__func__, comm,
                       {Call::kReduceScatter, from, to, count, type, {}, 0, stream, false},
                       reduction);
}

int ncclAllGather(const void* from, void* to, std::size_t count, int type, Comm comm,
                  cuda::Stream stream) {
  return add(__func__, comm, {Call::kAllGather, from, to, count, type, {}, 0, stream, false}, {});
}

int ncclSend(const void* from, std::size_t count, int type, int peer, Comm comm,
             cuda::Stream stream) {
  return add(__func__, comm,
             {Call::kSendReceive, from, nullptr, count, type, {}, peer, stream, false},
             {.has_to = false});
}

int ncclRecv(void* to, std::size_t count, int type, int peer, Comm comm, cuda::Stream stream) {
  return add(__func__, comm,
             {Call::kSendReceive, nullptr, to, count, type, {}, peer, stream, false},
             {.has_from = false});
}

int ncclGroupStart() {
  HV_ENTER();
  Group::of_thread().begin();
  return kSuccess;
}

int ncclGroupEnd() {
  const int refused = fake::enter(__func__);
  if (refused != kSuccess) Group::of_thread().refuse_call(refused);
  return Group::of_thread().end();
}

}  // namespace hv::nccl
