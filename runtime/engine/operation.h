// One operation on one tensor, from enqueue to release.
// SPDX-License-Identifier: Apache-2.0
//
// Made by the API, shared by its handle and the engine. The engine writes outcome and result, then
// sets is_done; after that nobody writes, and any thread may read.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/engine/tensor_description.h"
#include "src/base/status.h"

namespace hv::runtime {

struct Operation {
  std::string name;
  TensorDescription description;
  std::int64_t first_extent = 0;  // allgather: this rank's own
  const std::byte* input = nullptr;
  std::byte* output = nullptr;   // nullptr: the library makes room (owned) once the size is known
  std::size_t output_bytes = 0;  // how large the caller says that its output is; 0: it does not say

  bool is_started = false;  // the engine's own note: a backend has it
  std::vector<std::int64_t> result_shape;
  std::size_t result_bytes = 0;
  // The result, or an allgather's input that lay inside it; freed with the operation.
  std::unique_ptr<std::byte[]> owned;
  Status outcome;
  std::atomic<bool> is_done{false};
};

using OperationPtr = std::shared_ptr<Operation>;

}  // namespace hv::runtime
