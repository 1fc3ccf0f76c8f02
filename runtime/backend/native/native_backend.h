// The backend that is always there: the ranks' own shared memory and TCP connections.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/backend/backend.h"
#include "runtime/collective/ring_queue.h"
#include "runtime/transport/transport.h"

namespace hv::runtime {

// Host memory only; every type and reduction, but no scaling or averaging of bool. The plane
// outlives it.
class NativeBackend : public Backend {
 public:
  explicit NativeBackend(DataPlane& plane) : plane_(plane) {}

  const char* name() const override { return "native"; }
  bool supports(const CollectiveRequest& request) const override;
  std::unique_ptr<Collective> start(CollectiveRequest request) override;

 private:
  DataPlane& plane_;
  RingQueue rings_;
};

}  // namespace hv::runtime
