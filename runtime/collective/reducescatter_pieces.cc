// Reducescatter: an allgather's way backwards; every rank's share is folded piece by piece.
// SPDX-License-Identifier: Apache-2.0
//
// A slot holds one piece for each rank's share. For piece k of everybody's:
//   1. copy in: what this rank has of piece k of each share, scaled, into its slot; raise Ready.
//   Its
//      own share it reads from the input, unless prescaling rounds it.
//   2. fold: when all are Ready, piece k of the shares that this rank carries (its own, and those
//   of
//      ranks on other hosts), over this host's ranks, in rank order. On one host that is the
//      result.
//   3. cross hosts: a carrier sends what it has folded to the share's rank, which folds all hosts'
//      parts in host order as they arrive, and copies the result out.
//   4. raise Done when nothing of the slots is needed any more.
// Per rank, of N bytes in all and S ranks on H hosts: N copied in, about N read for the folds, H-1
// times N/S sent and received. Each element's fold is the same as an allreduce's in the order of
// hosts, so the bits are the same, too.
#include "runtime/collective/registry.h"

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/collective/carriers.h"
#include "runtime/collective/cross/cross_stage.h"
#include "runtime/collective/lanes.h"
#include "runtime/collective/ring_collective.h"
#include "runtime/collective/segment_walk.h"

namespace hv::runtime {
namespace {

// Each rank's share of every segment; only this rank's has an output.
std::vector<std::vector<Segment>> plan_shares(const CollectiveRequest& request, int size,
                                              int rank) {
  std::vector<std::vector<Segment>> shares(static_cast<std::size_t>(size));
  const auto element = static_cast<std::int64_t>(element_size(request.type));
  for (std::size_t i = 0; i < request.segments.size(); ++i) {
    const Segment& whole = request.segments[i];
    const std::int64_t row = std::max<std::int64_t>(request.row_counts[i], 1);
    for (int owner = 0; owner < size; ++owner) {
      const RowRange rows = rows_of(whole.count / row, size, owner);
      shares[static_cast<std::size_t>(owner)].push_back({whole.input + rows.begin * row * element,
                                                         owner == rank ? whole.output : nullptr,
                                                         rows.count * row});
    }
  }
  return shares;
}

class ReducescatterPieces : public RingCollective {
 public:
  ReducescatterPieces(CollectiveSetup setup, int ring, std::uint64_t pieces,
                      std::size_t piece_bytes, Carriers carriers,
                      std::vector<std::vector<Segment>> shares)
      : RingCollective(std::move(setup), ring, pieces),
        piece_bytes_(piece_bytes),
        carriers_(std::move(carriers)),
        shares_(std::move(shares)),
        finish_(finish_of(setup_.request)),
        reduce_(setup_.kernels.reduce_for(setup_.request.type, setup_.request.reduction)),
        own_walk_(own_share(), element_bytes()),
        out_walk_(own_share(), element_bytes()),
        sources_(static_cast<std::size_t>(host_.ranks())) {
    for (const std::vector<Segment>& share : shares_)
      in_walks_.emplace_back(share, element_bytes());
    const Topology& topology = setup_.plane.topology();
    for (const int owner : others_from_next(topology.size, rank())) {
      if (carriers_.carrier_of[static_cast<std::size_t>(owner)] != me_) continue;
      carried_.push_back({owner, Sender(setup_.plane.channel(owner, data_lane(this->ring(), 0)))});
    }
    if (!carriers_.remote_carriers.empty()) make_folder();
  }

 private:
  struct Carried {
    int owner;
    Sender sender;
  };

  bool step() override {
    bool moved = copy_in_next();
    moved |= fold_next();
    for (Carried& share : carried_) moved |= share.sender.step();
    moved |= cross_next();
    return raise_done() || moved;
  }
  bool is_complete() const override { return done_ == blocks(); }

  int rank() const { return setup_.plane.topology().rank; }
  const std::vector<Segment>& own_share() const {
    return shares_[static_cast<std::size_t>(rank())];
  }
  bool is_prescaled() const { return setup_.request.prescale != 1; }

  void make_folder() {
    const Topology& topology = setup_.plane.topology();
    std::vector<Channel*> channels(topology.leaders.size(), nullptr);
    for (const int carrier : carriers_.remote_carriers) {
      const int host = topology.host_of[static_cast<std::size_t>(carrier)];
      channels[static_cast<std::size_t>(host)] =
          &setup_.plane.channel(carrier, data_lane(ring(), 0));
    }
    const CrossTerms terms{setup_.plane, ring(), me_, setup_.request.type, reduce_, finish_};
    folder_ = std::make_unique<Folder>(terms, std::move(channels), host_index(topology));
  }

  Range piece(int owner, std::uint64_t number) const {
    const std::size_t size =
        total_elements(shares_[static_cast<std::size_t>(owner)]) * element_bytes();
    const std::size_t begin = std::min(size, static_cast<std::size_t>(number) * piece_bytes_);
    return {begin, std::min(size - begin, piece_bytes_)};
  }
  std::byte* place(int local, int owner, std::uint64_t number) const {
    return slot(local, number) + static_cast<std::size_t>(owner) * piece_bytes_;
  }

  bool copy_in_next() {
    if (in_ == blocks() || !is_slot_free(in_)) return false;
    const ScaleKernel scale = setup_.kernels.scale[static_cast<int>(setup_.request.type)];
    for (int owner = 0; owner < setup_.plane.topology().size; ++owner) {
      if (owner == rank() && !is_prescaled()) continue;
      const Range range = piece(owner, in_);
      std::byte* to = place(me_, owner, in_);
      if (owner != rank()) count_copied(range.size);
      in_walks_[static_cast<std::size_t>(owner)].visit(
          range.begin, range.size, [&](const std::byte* input, std::byte*, std::size_t size) {
            if (is_prescaled()) {
              scale(to, input, size / element_bytes(), setup_.request.prescale);
            } else {
              setup_.kernels.copy(to, input, size);
            }
            to += size;
          });
    }
    raise(Flag::kReady, ++in_);
    return true;
  }

  bool fold_next() {
    if (folded_ == in_ || !have_all_reached(Flag::kReady, folded_ + 1)) return false;
    for (Carried& share : carried_) {
      const Range range = piece(share.owner, folded_);
      std::byte* const mine = place(me_, share.owner, folded_);
      if (range.size > 0) fold(share.owner, 0, nullptr, mine, range.size, {});
      share.sender.add(mine, padded(range.size));
    }
    const Range own = piece(rank(), folded_);
    std::size_t offset = 0;
    own_walk_.visit(own.begin, own.size,
                    [&](const std::byte* input, std::byte* output, std::size_t size) {
                      std::byte* const to = folder_ ? place(me_, rank(), folded_) + offset : output;
                      fold(rank(), offset, is_prescaled() ? nullptr : input, to, size,
                           folder_ ? Finish{} : finish_);
                      offset += size;
                    });
    ++folded_;
    return true;
  }

  // Bytes from `offset` of the piece that every rank of this host has for that share. mine: this
  // rank's, if it does not lie in its slot.
  void fold(int owner, std::size_t offset, const std::byte* mine, std::byte* to, std::size_t bytes,
            const Finish& finish) {
    for (int local = 0; local < host_.ranks(); ++local)
      sources_[static_cast<std::size_t>(local)] = place(local, owner, folded_) + offset;
    if (mine != nullptr) sources_[static_cast<std::size_t>(me_)] = mine;
    reduce_(to, sources_.data(), host_.ranks(), bytes / element_bytes(), finish);
  }

  // On one host there is nothing to cross: what is folded is in the output.
  bool cross_next() {
    if (crossed_ == folded_) return false;
    if (!folder_) {
      crossed_ = folded_;
      return true;
    }
    const Range range = piece(rank(), crossed_);
    std::byte* const mine = place(me_, rank(), crossed_);
    if (range.size > 0 && !folder_->step(mine, range.size, &position_)) return false;
    if (position_ < padded(range.size)) return true;
    const std::byte* from = mine;
    out_walk_.visit(range.begin, range.size,
                    [&](const std::byte*, std::byte* output, std::size_t size) {
                      setup_.kernels.copy(output, from, size);
                      from += size;
                    });
    position_ = 0;
    ++crossed_;
    return true;
  }

  bool raise_done() {
    std::uint64_t count = crossed_;
    for (const Carried& share : carried_) count = std::min(count, share.sender.sent());
    if (count == done_) return false;
    raise(Flag::kDone, done_ = count);
    return true;
  }

  const std::size_t piece_bytes_;
  const Carriers carriers_;
  const std::vector<std::vector<Segment>> shares_;  // by rank
  const Finish finish_;
  const ReduceKernel reduce_;
  std::vector<SegmentWalk> in_walks_;  // by rank
  SegmentWalk own_walk_, out_walk_;
  std::vector<const void*> sources_;
  std::vector<Carried> carried_;                                // ranks of other hosts
  std::unique_ptr<Folder> folder_;                              // of the own share, between hosts
  std::size_t position_ = 0;                                    // in the piece that crosses
  std::uint64_t in_ = 0, folded_ = 0, crossed_ = 0, done_ = 0;  // pieces
};

}  // namespace

std::unique_ptr<Collective> reducescatter_pieces(CollectiveSetup setup) {
  const Topology& topology = setup.plane.topology();
  const std::size_t piece = piece_bytes(setup.plane.host().slot_bytes(), topology.size);
  if (piece == 0)
    return refused("scatter to " + std::to_string(topology.size) +
                   " ranks: a slot has no word for each; scatter within process sets");
  auto shares = plan_shares(setup.request, topology.size, topology.rank);
  std::size_t largest = 0;
  for (const std::vector<Segment>& share : shares)
    largest = std::max(largest, total_elements(share) * element_size(setup.request.type));
  const int ring = setup.rings.choose(largest * static_cast<std::size_t>(topology.size));
  Carriers carriers = plan_carriers(topology);
  return std::make_unique<ReducescatterPieces>(std::move(setup), ring,
                                               (largest + piece - 1) / piece, piece,
                                               std::move(carriers), std::move(shares));
}

}  // namespace hv::runtime
