// One operation on one tensor, from enqueue to release.
// SPDX-License-Identifier: Apache-2.0
//
// Made by the API, shared by its handle and the engine. The engine writes outcome and result, then
// sets is_done; after that nobody writes, and any thread may read, until its handle is released:
// that takes the result's memory out of it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/accelerator.h"
#include "runtime/engine/tensor_description.h"
#include "src/base/status.h"

namespace hv::runtime {

struct Operation {
  std::string name;
  std::string tag;        // kSend, kReceive: the name as both ranks give it
  std::uint32_t set = 0;  // the process set it is of
  TensorDescription description;
  std::int64_t first_extent = 0;  // where it varies: this rank's own
  const std::byte* input = nullptr;
  std::byte* output = nullptr;   // nullptr: the library makes room (owned) once the size is known
  std::size_t output_bytes = 0;  // how large the caller says that its output is; 0: it does not say
  const std::byte* indices = nullptr;  // sparse allreduce: one for each of this rank's rows
  std::vector<std::int64_t> splits;    // alltoall: rows of the input for each rank of the set

  // Of memory that is not the host's: where input and output lie, what orders the work there, and
  // what the caller's stream had been given at enqueue.
  int device = kHostDevice;
  void* stream = nullptr;
  std::shared_ptr<Accelerator> accelerator;
  MomentPtr ready;
  MomentPtr ended;  // the engine's: nullptr where the result is there when is_done is true

  std::uint64_t phase = 0;  // see BucketPlanner::observe
  // By a caller: nothing is held back for the sake of others then.
  mutable std::atomic<bool> is_awaited{false};
  mutable std::atomic<bool> is_followed{false};  // the caller's stream waits for what is left to do
  bool is_started = false;                       // the engine's own note: a backend has it
  bool is_absent = false;     // made by the engine: zeros of a rank that has joined
  std::uint64_t bucket = 0;   // that it travels in; this rank's own number
  std::uint32_t present = 0;  // so many ranks have it, others have joined; 0: all have it
  int last_joined = -1;       // kJoin: the rank of the set that joined last
  std::uint32_t new_set = 0;  // kAddSet: the number that the set got
  std::vector<std::int64_t> result_shape;
  std::size_t result_bytes = 0;
  std::vector<std::int64_t> received;  // alltoall: rows of the result from each rank
  // The result, or an allgather's input that lay inside it; freed with the operation.
  MemoryPtr owned;
  MemoryPtr owned_indices;  // sparse allreduce: of the result's rows
  bool is_staged = false;   // the result comes into `owned` first: the output lies in the input
  Status outcome;
  std::atomic<bool> is_done{false};
};

using OperationPtr = std::shared_ptr<Operation>;

}  // namespace hv::runtime
