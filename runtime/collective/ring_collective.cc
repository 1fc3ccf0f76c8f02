// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/ring_collective.h"

#include <bit>

#include "runtime/collective/lanes.h"
#include "runtime/transport/placement.h"

namespace hv::runtime {
namespace {

// Then it is the turn of others: a rank that has much to do without waiting for anybody gives signs
// of life all the same, and sees whether its peers live.
constexpr int kStepsATurn = 16;

}  // namespace

RingCollective::RingCollective(CollectiveSetup setup, int ring, std::uint64_t blocks)
    : setup_(std::move(setup)),
      host_(setup_.plane.host()),
      me_(local_index(setup_.plane.topology())),
      blocks_(blocks),
      turn_(setup_.rings.take(ring, blocks)) {}

bool RingCollective::is_slot_free(std::uint64_t block) const {
  const std::uint64_t number = turn_.first_block + block;
  return number < kSlotsPerRing ||
         host_.all_reached(turn_.ring, Flag::kDone, number + 1 - kSlotsPerRing);
}

std::optional<SegmentWalk::Piece> RingCollective::without_slot(SegmentWalk* walk, std::size_t from,
                                                               std::size_t bytes) const {
  if (host_.ranks() > 1 || bytes % kWordBytes != 0) return std::nullopt;
  const SegmentWalk::Piece piece = walk->piece(from, bytes);
  if (piece.bytes < bytes) return std::nullopt;
  return piece;
}

Progress RingCollective::advance() {
  if (is_finished_) return status_.ok() ? Progress::kDone : Progress::kFailed;
  int steps = 0;
  if (setup_.rings.is_up(turn_)) {
    while (steps < kStepsATurn && step()) {
      ++steps;
      // Sleepers are woken block by block: the last block of a pass may be far away.
      if (std::exchange(is_bell_due_, false)) host_.ring_others();
    }
    if (!status_.ok()) return fail(std::move(status_));
    if (is_complete()) {
      is_finished_ = true;
      setup_.rings.finish(turn_);
      return Progress::kDone;
    }
  }
  if (!setup_.plane.is_healthy()) return fail(setup_.plane.health());
  if (steps == kStepsATurn) return Progress::kPaused;
  return steps > 0 ? Progress::kAdvanced : Progress::kPending;
}

// The ring stays blocked: after a loss nothing on this fabric can complete any more.
Progress RingCollective::fail(Status status) {
  is_finished_ = true;
  status_ = std::move(status);
  return Progress::kFailed;
}

// Dividing by a power of two is multiplying by its inverse, bit for bit, and cheaper; 16-bit and
// 8-bit floats are multiplied in float32, where the inverse's error is far below their rounding.
Finish finish_of(const CollectiveRequest& request) {
  Finish finish{request.postscale, static_cast<double>(request.divisor)};
  const ElementType type = wire_type(request.type, request.compression);
  const bool is_power = std::has_single_bit(static_cast<std::uint64_t>(request.divisor));
  if (is_narrow_float(type) || (is_floating(type) && is_power))
    return {finish.factor / finish.divisor, 1};
  return finish;
}

}  // namespace hv::runtime
