// Takes the tensors of a test's operations to a GPU of the stand-in's and their results back, so
// that tests of the host's memory are tests of a GPU's, too.
// SPDX-License-Identifier: Apache-2.0
//
// With HVRUN_TEST_MEMORY=nccl, or =staged, which is without NCCL. One for each rank; any thread of
// it may call.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/engine/operation.h"
#include "tests/ranks/engine/gpu.h"

namespace hv::runtime {

class GpuTensors {
 public:
  // nullptr: this run is of the host's memory.
  static std::unique_ptr<GpuTensors> wanted(int rank);
  explicit GpuTensors(int rank) : gpu_(rank) {}

  // Before it is enqueued; operations without tensors stay as they are.
  void take_there(Operation& operation);
  // After it is done: what was written there lies where the caller wanted it, or in the operation's
  // own memory, on the host.
  void bring_back(Operation& operation);

 private:
  struct Place {
    std::byte* host = nullptr;  // the caller's output
    std::vector<std::byte*> blocks;
  };

  void copy_back(Operation& operation, std::byte* host);
  std::byte* put(const std::byte* bytes, std::size_t count, Place* place);

  std::mutex mutex_;  // guards all below
  Gpu gpu_;
  std::map<const Operation*, Place> places_;
};

}  // namespace hv::runtime
