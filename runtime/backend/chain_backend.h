// ChainBackend: the first of several backends that supports a request.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "runtime/backend/backend.h"

namespace hv::runtime {

class ChainBackend : public Backend {
 public:
  // They outlive it.
  explicit ChainBackend(std::vector<Backend*> backends) : backends_(std::move(backends)) {}

  const char* name() const override { return "chain"; }
  bool supports(const CollectiveRequest& request) const override {
    return find(request) != nullptr;
  }
  std::unique_ptr<Collective> prepare(const CollectiveRequest& first) override {
    return find(first)->prepare(first);
  }
  std::unique_ptr<Collective> start(CollectiveRequest request) override {
    Backend* const found = find(request);
    return found->start(std::move(request));
  }

 private:
  Backend* find(const CollectiveRequest& request) const {
    for (Backend* const one : backends_)
      if (one->supports(request)) return one;
    return nullptr;
  }

  const std::vector<Backend*> backends_;
};

}  // namespace hv::runtime
