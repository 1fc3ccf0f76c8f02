// Tensors in a GPU's memory by a backend for the host's: copied aside, and the results back.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/backend/backend.h"

namespace hv::runtime {

// What the other backend supports, for memory that is not the host's. That one outlives it.
class StagedBackend : public Backend {
 public:
  // room: where it is copied to: pinned memory of the host's, or, for a backend that hands
  // addresses on, other memory of the GPU's, where nothing is awaited any more.
  explicit StagedBackend(Backend& host, Accelerator::Room room = Accelerator::Room::kPinned)
      : host_(host), room_(room) {}

  const char* name() const override { return "staged"; }
  bool supports(const CollectiveRequest& request) const override;
  std::unique_ptr<Collective> start(CollectiveRequest request) override;

 private:
  CollectiveRequest for_host(CollectiveRequest request) const;

  Backend& host_;
  const Accelerator::Room room_;
};

}  // namespace hv::runtime
