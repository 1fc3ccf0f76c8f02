// What tests of the stand-in for NCCL have of a rank: a thread with a GPU's context, a stream and
// memory there, and NCCL's functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "runtime/backend/nccl/nccl_abi.h"
#include "runtime/device/cuda/driver.h"

namespace hv::nccl {

struct Functions {
#define HV_ONE(here, exported, parameters) int(*here) parameters = nullptr;
  HV_NCCL_FUNCTIONS(HV_ONE)
  HV_NCCL_NEWER_FUNCTIONS(HV_ONE)
#undef HV_ONE
  const char* (*last_error)(Comm comm) = nullptr;
  void (*set_faults)(const char* list) = nullptr;
  int (*left)() = nullptr;
  int (*guests)() = nullptr;
};

}  // namespace hv::nccl

namespace hv {

// Of the stand-ins, opened at the first call.
const nccl::Functions& nccl_call();
const cuda::DriverFunctions& cuda_call();

// The calling thread has that GPU's context from now on.
void use_gpu(int device);

class Rank {
 public:
  Rank(int rank, int ranks);
  ~Rank();
  Rank(const Rank&) = delete;

  // Meets the others; what came of it.
  int join(const nccl::UniqueId& id, bool is_blocking = false);
  // What the communicator says when nothing goes on any more.
  int settle() const { return settle(comm); }
  static int settle(nccl::Comm comm);
  // True: the call was made, and what it began has been launched.
  bool has_launched(int result) const;

  void* room(std::size_t bytes);
  template <class Value>
  Value* put(const std::vector<Value>& values) {
    return static_cast<Value*>(put_bytes(values.data(), values.size() * sizeof(Value)));
  }
  // Waits for the stream.
  template <class Value>
  std::vector<Value> get(const Value* from, std::size_t count) {
    std::vector<Value> values(count);
    get_bytes(values.data(), from, count * sizeof(Value));
    return values;
  }

  const int rank;
  const int ranks;
  nccl::Comm comm = nullptr;
  cuda::Stream stream = nullptr;

 private:
  void* put_bytes(const void* from, std::size_t bytes);
  void get_bytes(void* to, const void* from, std::size_t bytes);

  std::vector<cuda::Address> blocks_;
};

nccl::UniqueId make_id();
// Ranks as threads, each on a GPU of its own, that have met; they destroy what is still there.
void run_ranks(int ranks, const std::function<void(Rank&)>& does);
// The same without a meeting.
void run_threads(int ranks, const std::function<void(Rank&)>& does);

}  // namespace hv
