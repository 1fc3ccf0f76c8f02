// Tensors in a GPU's memory by a backend for the host's: copied there, and the results back.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/backend/backend.h"

namespace hv::runtime {

// What the other backend supports, for memory that is not the host's. That one outlives it.
class StagedBackend : public Backend {
 public:
  explicit StagedBackend(Backend& host) : host_(host) {}

  const char* name() const override { return "staged"; }
  bool supports(const CollectiveRequest& request) const override;
  std::unique_ptr<Collective> start(CollectiveRequest request) override;

 private:
  Backend& host_;
};

}  // namespace hv::runtime
