// The backend that is always there: the ranks' own shared memory and TCP connections.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "runtime/backend/backend.h"
#include "runtime/collective/ring_queue.h"
#include "runtime/device/kernels.h"
#include "runtime/transport/transport.h"
#include "src/contract/algorithms.h"

namespace hv::runtime {

struct NativeSettings {
  std::vector<AlgorithmWish> wishes{};  // alike on all ranks
  const Kernels* kernels = &best_kernels();
};

// Host memory only; every type and reduction, but no scaling or averaging of bool, and Adasum only
// as an allreduce of one floating tensor. The plane outlives it.
class NativeBackend : public Backend {
 public:
  explicit NativeBackend(DataPlane& plane, NativeSettings settings = {})
      : plane_(plane), settings_(std::move(settings)) {}

  const char* name() const override { return "native"; }
  static bool carries(const CollectiveRequest& request);
  bool supports(const CollectiveRequest& request) const override { return carries(request); }
  std::unique_ptr<Collective> start(CollectiveRequest request) override;

 private:
  DataPlane& plane_;
  const NativeSettings settings_;
  RingQueue rings_;
};

}  // namespace hv::runtime
