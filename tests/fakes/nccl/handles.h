// What the exported functions of the stand-in for NCCL begin with: their faults, and what the
// handles that they are given stand for.
// SPDX-License-Identifier: Apache-2.0
//
// Any thread may call. A handle that stands for nothing ends the process.
#pragma once

#include <cstddef>
#include <memory>

#include "runtime/backend/nccl/nccl_abi.h"
#include "tests/fakes/nccl/communicator.h"

// Whoever defines one of them otherwise than it is called does not compile.
extern "C" {
namespace hv::nccl {
#define HV_ONE(here, exported, parameters) [[gnu::visibility("default")]] int exported parameters;
HV_NCCL_FUNCTIONS(HV_ONE)
HV_NCCL_NEWER_FUNCTIONS(HV_ONE)
#undef HV_ONE
[[gnu::visibility("default")]] const char* ncclGetErrorString(int result);
[[gnu::visibility("default")]] const char* ncclGetLastError(Comm comm);
}  // namespace hv::nccl
}

namespace hv::fake {

// kSuccess, or the fault of this call. hangs: it was told to; nullptr: then it never returns.
int enter(const char* function, bool* hangs = nullptr);

#define HV_ENTER() \
  if (const int refused = hv::fake::enter(__func__); refused != hv::nccl::kSuccess) return refused

nccl::Comm make_handle(std::shared_ptr<Communicator> communicator);
std::shared_ptr<Communicator> find(nccl::Comm comm);
// The handle is none from then on. Its registrations remain counted unless they are forgotten.
std::shared_ptr<Communicator> take(nccl::Comm comm, bool forgets_registrations);

// Of a buffer or, with its memory, of a window.
nccl::Window make_registration(nccl::Comm comm, const void* window = nullptr,
                               std::size_t bytes = 0);
// 1 + the place of both buffers in a window of the communicator's; 0: not both lie in one. NCCL
// chooses another kernel where both do, each rank by itself.
std::uint64_t window_place(nccl::Comm comm, const void* from, const void* to);
int drop_registration(nccl::Window registration);

void add_memory(void* address);
int drop_memory(void* address);

}  // namespace hv::fake
