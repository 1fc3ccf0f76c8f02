// Backend: who carries out a whole collective. The engine decides what and when; a backend does it.
// SPDX-License-Identifier: Apache-2.0
//
// start() never blocks and is called by one thread at a time (whoever holds the engine's progress
// lock).
#pragma once

#include <memory>

#include "runtime/collective/collective.h"

namespace hv::runtime {

class Backend {
 public:
  virtual ~Backend() = default;
  virtual const char* name() const = 0;
  virtual bool supports(const CollectiveRequest& request) const = 0;
  // Collectives are started in the same order on every rank; several may be under way at once.
  virtual std::unique_ptr<Collective> start(CollectiveRequest request) = 0;
};

}  // namespace hv::runtime
