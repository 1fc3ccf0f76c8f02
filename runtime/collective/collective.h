// Collective: one whole operation among the ranks, described by a request and carried out step by
// step.
// SPDX-License-Identifier: Apache-2.0
//
// Everything that all ranks must do alike is in the request, and equal on all of them. advance()
// never blocks and is called by one thread at a time (whoever holds the engine's progress lock).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/device/element_type.h"
#include "src/base/status.h"

namespace hv::runtime {

enum class CollectiveKind : std::uint8_t {
  kAllreduce = 1,
  kAllgather = 2,
  kBroadcast = 3,
  kBarrier = 4
};

// A piece of memory that takes part; a fused operation has many. count is in elements of the
// request's type.
struct Segment {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;  // may equal input
  std::int64_t count = 0;
};

struct CollectiveRequest {
  CollectiveKind kind = CollectiveKind::kBarrier;
  ElementType type = ElementType::kFloat32;
  Reduction reduction = Reduction::kSum;  // average has become sum and a division by `divisor` here
  int root = 0;
  double prescale = 1;
  double postscale = 1;
  std::int64_t divisor = 1;       // average: the set's size; integers truncate towards zero
  bool deterministic = false;     // the same bits whatever the fusion and the order of arrival
  std::vector<Segment> segments;  // allgather: one; output is the whole result
  std::vector<std::int64_t> counts_by_rank;  // allgather: elements that each rank contributes
};

enum class Progress { kDone, kPending, kFailed };

// A collective under way. Destroying it before it is done is allowed only after a failure of the
// fabric.
class Collective {
 public:
  virtual ~Collective() = default;
  // Does what can be done without waiting.
  virtual Progress advance() = 0;
  // After kFailed.
  virtual Status status() const = 0;
};

}  // namespace hv::runtime
