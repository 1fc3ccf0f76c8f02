// PairCarrier: what moves the bytes of sends and receives instead of the fabric.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/collective/collective.h"

namespace hv::runtime {

// One end of a transfer on which both have agreed; neither the sender nor its size is in doubt.
struct PairRequest {
  bool sends = false;
  int peer = 0;  // the other rank of the job
  // The same at both ends. No other of the sender's process has it, in this job or another.
  std::uint64_t number = 0;
  Segment bytes;                   // count: of bytes; on the host
  std::vector<MemoryPtr> keeps{};  // as CollectiveRequest's
};

class PairCarrier {
 public:
  virtual ~PairCarrier() = default;
  // Never blocks. It goes on beside all others, whatever their order at the other end. Destroyed
  // before it is done, it is given up: what the peer sends is not waited for, and that memory is
  // not touched any more.
  virtual std::unique_ptr<Collective> carry(PairRequest request) = 0;
};

}  // namespace hv::runtime
