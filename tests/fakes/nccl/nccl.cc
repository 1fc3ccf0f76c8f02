// A stand-in for libnccl.so.2: ranks are processes of this machine or threads of one, work is put
// on the streams of the stand-in for CUDA, and what NCCL would not notice ends the process.
// SPDX-License-Identifier: Apache-2.0
//
// HVRUN_FAKE_NCCL_VERSION: 22803 for 2.28.3, which it is without. For faults and delays see
// faults.h of the stand-in for CUDA; delays are only of communicators that do not block.
// HVRUN_FAKE_NCCL_ROOM: see gpu_turns.h.
// NCCL_MULTI_RANK_GPU_ENABLE=1: as with NCCL from 2.30 on ranks may share a GPU.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/fakes/nccl/group.h"
#include "tests/fakes/nccl/handles.h"
#include "tests/fakes/nccl/outside.h"

namespace hv::nccl {
namespace {

using fake::Call;
using fake::Communicator;
using fake::find;
using fake::Group;
using fake::Member;

bool may_share_gpu() {
  const char* const told = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  return told != nullptr && std::atoi(told) == 1 && fake::version() >= 23000;
}

bool is_blocking(const Config* config) {
  return config == nullptr || config->blocking == kUnset || config->blocking != 0;
}

// Meets the others behind the call, or in it where the communicator blocks.
int begin(Comm* comm, const Member& self, bool is_blocking, Communicator::FindId find_id,
          bool hangs) {
  const auto made = std::make_shared<Communicator>(self, is_blocking);
  *comm = fake::make_handle(made);
  made->start(std::move(find_id), hangs);
  return Group::of_thread().add_wait(made);
}

}  // namespace

// ---- communicators ----

int ncclGetVersion(int* to) {
  HV_ENTER();
  *to = fake::version();
  return kSuccess;
}

int ncclGetUniqueId(UniqueId* id) {
  HV_ENTER();
  *id = fake::make_meeting();
  return kSuccess;
}

int ncclCommInitRankConfig(Comm* comm, int ranks, UniqueId id, int rank, Config* config) {
  bool hangs = false;
  *comm = nullptr;
  if (const int refused = fake::enter(__func__, &hangs); refused != kSuccess)
    return Group::of_thread().refuse_call(refused);
  if (ranks < 1 || rank < 0 || rank >= ranks || (config != nullptr && config->magic != kMagic))
    return Group::of_thread().refuse_call(kInvalidArgument);
  Member self{rank, ranks, 0, {}, may_share_gpu()};
  self.device = fake::cuda_functions().device(self.gpu);
  if (self.device < 0) return Group::of_thread().refuse_call(kUnhandledCudaError);
  const auto given = [id](UniqueId* found, const fake::StopSign&) {
    *found = id;
    return kSuccess;
  };
  return begin(comm, self, is_blocking(config), given, hangs);
}

int ncclCommFinalize(Comm comm) {
  HV_ENTER();
  const auto communicator = find(comm);
  if (const int state = communicator->check_ready(); state != kSuccess) return state;
  if (const int result = communicator->finalize(); result != kInProgress) return result;
  return Group::of_thread().add_wait(communicator);
}

int ncclCommDestroy(Comm comm) {
  HV_ENTER();
  if (const int state = find(comm)->check_ready(); state != kSuccess) return state;
  fake::take(comm, false)->leave();
  return kSuccess;
}

int ncclCommAbort(Comm comm) {
  HV_ENTER();
  fake::take(comm, true)->stop();
  return kSuccess;
}

int ncclCommGetAsyncError(Comm comm, int* error) {
  HV_ENTER();
  *error = find(comm)->async_error();
  return kSuccess;
}

int ncclCommRevoke(Comm comm, int flags) {
  HV_ENTER();
  return flags == 0 ? find(comm)->revoke() : kInvalidArgument;
}

int ncclCommShrink(Comm comm, int* excluded, int count, Comm* smaller, Config* config, int flags) {
  bool hangs = false;
  *smaller = nullptr;
  if (const int refused = fake::enter(__func__, &hangs); refused != kSuccess) return refused;
  const auto parent = find(comm);
  std::vector<int> staying;
  for (int rank = 0; rank < parent->ranks(); ++rank)
    if (std::find(excluded, excluded + count, rank) == excluded + count) staying.push_back(rank);
  const auto own = std::find(staying.begin(), staying.end(), parent->rank());
  if (own == staying.end() || count < 1) return kInvalidArgument;
  if ((flags & 1) != 0) parent->revoke();  // NCCL_SHRINK_ABORT
  Member self = parent->self();
  self.rank = static_cast<int>(own - staying.begin());
  self.ranks = static_cast<int>(staying.size());
  const auto agreed = [parent, staying](UniqueId* id, const fake::StopSign& stop) {
    return parent->agree_on_id(staying, id, stop);
  };
  return begin(smaller, self, config == nullptr ? parent->is_blocking() : is_blocking(config),
               agreed, hangs);
}

const char* ncclGetErrorString(int result) {
  static const char* const words[] = {"no error",
                                      "unhandled cuda error",
                                      "unhandled system error",
                                      "internal error",
                                      "invalid argument",
                                      "invalid usage",
                                      "remote process exited or there was a network error",
                                      "NCCL operation in progress"};
  return result >= 0 && result < static_cast<int>(std::size(words)) ? words[result]
                                                                    : "unknown result code";
}

const char* ncclGetLastError(Comm comm) {
  thread_local std::string words;
  words = comm == nullptr ? "" : find(comm)->last_error();
  return words.c_str();
}

// ---- memory ----

int ncclMemAlloc(void** address, std::size_t bytes) {
  HV_ENTER();
  cuda::Address made = 0;
  if (fake::cuda_functions().allocate(&made, bytes) != cuda::kSuccess) return kUnhandledCudaError;
  *address = reinterpret_cast<void*>(made);
  fake::add_memory(*address);
  return kSuccess;
}

// Unlike the driver's own way it need not wait for what may still use the memory.
int ncclMemFree(void* address) {
  HV_ENTER();
  if (const int unknown = fake::drop_memory(address); unknown != kSuccess) return unknown;
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  return fake::cuda_functions().unmap(number) ? kSuccess : kUnhandledCudaError;
}

int ncclCommRegister(const Comm comm, void* address, std::size_t bytes, void** handle) {
  HV_ENTER();
  if (const int state = find(comm)->check_ready(); state != kSuccess) return state;
  fake::host_view(address, bytes);
  *handle = fake::make_registration(comm);
  return kSuccess;
}

int ncclCommDeregister(const Comm comm, void* handle) {
  HV_ENTER();
  find(comm);
  return fake::drop_registration(static_cast<Window>(handle));
}

// The window is there when all ranks have called and the communicator is back at ncclSuccess.
int ncclCommWindowRegister(Comm comm, void* address, std::size_t bytes, Window* window, int flags) {
  bool hangs = false;
  if (const int refused = fake::enter(__func__, &hangs); refused != kSuccess) return refused;
  const auto communicator = find(comm);
  if (const int state = communicator->check_ready(); state != kSuccess) return state;
  if ((flags & ~kSymmetricWindow) != 0 || address == nullptr || bytes == 0) return kInvalidArgument;
  fake::host_view(address, bytes);
  *window = nullptr;
  if (hangs) communicator->hang();
  communicator->meet_all(Call::kRegisterWindow, bytes,
                         [=] { *window = fake::make_registration(comm, address, bytes); });
  return Group::of_thread().add_wait(communicator);
}

int ncclCommWindowDeregister(Comm comm, Window window) {
  HV_ENTER();
  find(comm);
  return fake::drop_registration(window);
}

}  // namespace hv::nccl
