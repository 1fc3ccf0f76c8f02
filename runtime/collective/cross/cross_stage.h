// CrossStage: combines what one lane's rank has reduced on its host with the same share on the
// other hosts.
// SPDX-License-Identifier: Apache-2.0
//
// Shares come in with add() and are completed in that order, in place. One file for each way:
//   exchange  every host sends its share to every other and folds all H of them itself: one step,
//             (H-1) * S bytes out per lane. For two hosts, and for small shares.
//   scatter   each host folds 1/H of the share and sends the result round: two steps, 2 * (H-1)/H *
//             S bytes.
// Both fold in host order at every element, so they give the same bits. Those of a schedule
// (cross_schedule.h) fold two shares at a time, and round to the type each time:
//   ring      to the next host only: 2 (H-1) steps, the fewest bytes; bits depend on the place.
//   halving, doubling, tree  recursive halving and doubling, recursive doubling, a binomial tree:
//             the same bits, wherever an element lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/collective/piece_stream.h"
#include "runtime/device/kernels.h"
#include "runtime/transport/transport.h"

namespace hv::runtime {

struct CrossTerms {
  DataPlane& plane;
  int ring;
  int lane;
  ElementType type;
  ReduceKernel reduce;
  Finish finish;  // applied with the fold over hosts
};

class CrossStage {
 public:
  virtual ~CrossStage() = default;
  // The share stays where it is until it is completed. It is whole words, or lies in a slot, where
  // the few bytes up to a whole word after its end can be read.
  virtual void add(std::byte* share, std::size_t bytes) = 0;
  // Moves something on; false when nothing can be done now.
  virtual bool step() = 0;
  virtual std::uint64_t completed() const = 0;
};

std::unique_ptr<CrossStage> cross_exchange(const CrossTerms& terms);
std::unique_ptr<CrossStage> cross_scatter(const CrossTerms& terms);
std::unique_ptr<CrossStage> cross_ring(const CrossTerms& terms);
std::unique_ptr<CrossStage> cross_halving(const CrossTerms& terms);
std::unique_ptr<CrossStage> cross_doubling(const CrossTerms& terms);
std::unique_ptr<CrossStage> cross_tree(const CrossTerms& terms);

// Folds `bytes` bytes, arriving on the channels of all other hosts, into `mine`, which is host
// `me`'s part.
class Folder {
 public:
  Folder(const CrossTerms& terms, std::vector<Channel*> channel_of_host, int me);
  // From `*position` (of padded(bytes)) on, as far as all have arrived; false when nothing has.
  bool step(std::byte* mine, std::size_t bytes, std::size_t* position);

 private:
  CrossTerms terms_;
  std::vector<Channel*> channels_;  // by host; null for this one
  int me_;
  std::vector<const void*> sources_;
};

}  // namespace hv::runtime
