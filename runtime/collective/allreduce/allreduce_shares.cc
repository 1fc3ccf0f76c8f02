// Allreduce by shares: each rank of a host reduces its own part of every block; hosts then combine
// the parts.
// SPDX-License-Identifier: Apache-2.0
//
// A block is cut into L shares, one for each lane; lane l is local rank l on every host. Three
// algorithms of the registry are this one with another L:
//   shares        on one host: L is the number of ranks.
//   torus         on several: L is the smallest number of ranks that a host has. Reduce-scatter in
//                 the host, every local rank carries its share between hosts, allgather in the
//                 host.
//   hierarchical  on several: L is 1. The first rank of each host reduces and carries everything:
//                 for small tensors, one message between hosts instead of L.
// For each block:
//   1. copy in: this rank's block into its slot, less its own share; raise Ready.
//   2. reduce: when all are Ready, the share's owner folds that share over the host's ranks, in
//      rank order, into its slot.
//   3. cross hosts (see cross_stage.h): the owner combines it with those of its lane on the other
//      hosts, in host order; raise Reduced.
//   4. copy out: when all lanes are Reduced, every share from its owner's slot to the output; raise
//      Done.
// A rank that is alone on its host needs no slots: what it contributes is combined with the other
// hosts' in its output.
// Stages work on different blocks at once, as far as the ring has slots. Two steps inside the host;
// per rank (L-1)/L * B copied in, about B read for the reduction, B copied out. Each element's fold
// is: within each host in rank order, rounded to the type, then over hosts, in host order unless a
// tree carries the shares (docs/algorithms.md); it depends on nothing else.
#include <optional>
#include <vector>

#include "runtime/collective/allreduce/allreduce.h"
#include "runtime/collective/cross/cross_stage.h"
#include "runtime/collective/lanes.h"
#include "runtime/collective/registry.h"

namespace hv::runtime {
namespace {

// Without slots: as much as a lane's window takes, while it is still in the cache.
constexpr std::uint64_t kBlocksAhead = 8;

class AllreduceShares : public Allreduce {
 public:
  AllreduceShares(CollectiveSetup setup, int ring, const BlockPlan& plan, int lanes)
      : Allreduce(std::move(setup), ring, plan),
        lanes_(lanes),
        in_walk_(setup_.request.segments, element_bytes()),
        own_walk_(setup_.request.segments, element_bytes()),
        out_walk_(setup_.request.segments, element_bytes()),
        sources_(static_cast<std::size_t>(host_.ranks())) {
    if (is_owner() && setup_.plane.topology().leaders.size() > 1)
      cross_ = start_cross_stage({setup_.plane, this->ring(), me_, wire_type_, reduce_, finish_},
                                 setup_, plan_.total_bytes / static_cast<std::size_t>(lanes_));
  }

 private:
  bool step() override {
    return copy_out_next() || cross_next() || reduce_next() || copy_in_next();
  }
  bool is_complete() const override { return out_ == blocks(); }
  bool is_owner() const { return me_ < lanes_; }

  // A lane's share of a block, relative to the block.
  Range share(std::uint64_t block, int lane) const { return cut(plan_.size(block), lanes_, lane); }

  std::optional<SegmentWalk::Piece> block_without_slot(SegmentWalk* walk, std::uint64_t block) {
    if (!cross_ || is_compressed()) return std::nullopt;
    return without_slot(walk, plan_.begin(block), plan_.size(block));
  }

  // Steps 1 and 2 for a block that needs no slot.
  bool contribute(const SegmentWalk::Piece& block) {
    if (own_ < in_ || in_ == out_ + kBlocksAhead) return false;
    if (is_prescaled() || block.input != block.output)
      copy_in(&in_walk_, plan_.begin(in_), block.bytes, block.output);
    cross_->add(block.output, block.bytes);
    raise(Flag::kReady, ++in_);
    own_ = in_;
    return true;
  }

  bool copy_in_next() {
    if (in_ == blocks()) return false;
    if (const auto block = block_without_slot(&in_walk_, in_)) return contribute(*block);
    if (!is_slot_free(in_)) return false;
    const std::size_t start = plan_.begin(in_), size = plan_.size(in_);
    // Its own share is read from the input, unless it is rounded on its way.
    const Range own = is_owner() && is_own_input() ? share(in_, me_) : Range{size, 0};
    const std::size_t after = own.begin + own.size;
    copy_in(&in_walk_, start, own.begin, slot(me_, in_));
    copy_in(&in_walk_, start + after, size - after, slot(me_, in_) + after);
    raise(Flag::kReady, ++in_);
    return true;
  }

  bool reduce_next() {
    if (!is_owner() || own_ == in_ || !have_all_reached(Flag::kReady, own_ + 1)) return false;
    const Range range = share(own_, me_);
    std::size_t offset = range.begin;
    const auto reduce_piece = [&](const std::byte* own, std::size_t size) {
      for (int r = 0; r < host_.ranks(); ++r)
        sources_[static_cast<std::size_t>(r)] = slot(r, own_) + offset;
      if (own != nullptr) sources_[static_cast<std::size_t>(me_)] = own;
      // Between hosts the finish comes last.
      reduce_(slot(me_, own_) + offset, sources_.data(), host_.ranks(), size / wire_bytes(),
              cross_ ? Finish{} : finish_);
      offset += size;
    };
    if (is_own_input()) {
      own_walk_.visit(
          plan_.begin(own_) + range.begin, range.size,
          [&](const std::byte* input, std::byte*, std::size_t size) { reduce_piece(input, size); });
    } else {
      reduce_piece(nullptr, range.size);
    }
    count_copied(range.size);
    if (cross_) {
      cross_->add(slot(me_, own_) + range.begin, range.size);
    } else {
      raise(Flag::kReduced, own_ + 1);
    }
    ++own_;
    return true;
  }

  bool cross_next() {
    if (!cross_ || !cross_->step()) return false;
    if (cross_->completed() > crossed_) raise(Flag::kReduced, crossed_ = cross_->completed());
    return true;
  }

  bool are_lanes_reduced(std::uint64_t count) const {
    for (int lane = 0; lane < lanes_; ++lane)
      if (!has_reached(lane, Flag::kReduced, count)) return false;
    return true;
  }

  bool copy_out_next() {
    if (out_ == in_ || !are_lanes_reduced(out_ + 1)) return false;
    for (int lane = 0; lane < lanes_ && !block_without_slot(&out_walk_, out_); ++lane) {
      const Range range = share(out_, lane);
      copy_out(&out_walk_, plan_.begin(out_) + range.begin, range.size,
               slot(lane, out_) + range.begin);
    }
    raise(Flag::kDone, ++out_);
    return true;
  }

  const int lanes_;
  SegmentWalk in_walk_, own_walk_, out_walk_;
  std::vector<const void*> sources_;
  std::unique_ptr<CrossStage> cross_;
  std::uint64_t in_ = 0;       // blocks copied in
  std::uint64_t own_ = 0;      // blocks whose own share is reduced over this host
  std::uint64_t crossed_ = 0;  // and over all hosts
  std::uint64_t out_ = 0;      // blocks copied out
};

std::unique_ptr<Collective> make_shares(CollectiveSetup setup, int lanes) {
  const BlockPlan plan = plan_blocks(setup.request, setup.plane.host().slot_bytes());
  const int ring = setup.rings.choose(plan.total_bytes);
  return std::make_unique<AllreduceShares>(std::move(setup), ring, plan, lanes);
}

}  // namespace

std::unique_ptr<Collective> allreduce_shares(CollectiveSetup setup) {
  const int lanes = setup.plane.topology().size;
  return make_shares(std::move(setup), lanes);
}

std::unique_ptr<Collective> allreduce_through_slots(CollectiveSetup setup) {
  const bool is_pair = setup.plane.host().ranks() == 2;
  return is_pair ? allreduce_direct(std::move(setup)) : allreduce_shares(std::move(setup));
}

std::unique_ptr<Collective> allreduce_torus(CollectiveSetup setup) {
  const int lanes = lanes_of(setup.plane.topology());
  return make_shares(std::move(setup), lanes);
}

std::unique_ptr<Collective> allreduce_hierarchical(CollectiveSetup setup) {
  return make_shares(std::move(setup), 1);
}

}  // namespace hv::runtime
