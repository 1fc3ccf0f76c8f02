// Broadcast: through the root's slots on its host, and between hosts along a tree of them, one for
// each lane.
// SPDX-License-Identifier: Apache-2.0
//
// For each block:
//   on the root's host  1. the root copies it into its slot, Ready. 2. lane l's rank sends share l
//                       of it to its children in the tree of hosts. 3. everybody copies it out,
//                       Done.
//   on another host     1. lane l's rank receives share l into its slot, Ready, and sends it on to
//                       its own children. 2. when all lanes are Ready, everybody copies out, Done.
// Two algorithms of the registry are this one with another tree:
//   tree   binomial: log2(H) steps between hosts; a host's lanes send at most log2(H) * B bytes.
//   chain  each host sends to the next one: H-1 steps for the first block, and then a block a step;
//          nobody sends more than B bytes. For large tensors.
// A rank that is alone on its host needs no slots: it sends from its input, receives into its
// output and sends on from there.
#include <optional>
#include <vector>

#include "runtime/collective/allreduce/allreduce.h"
#include "runtime/collective/lanes.h"
#include "runtime/collective/piece_stream.h"
#include "runtime/collective/registry.h"

namespace hv::runtime {
namespace {

constexpr std::size_t kOneLaneUpToBytes = 8 << 10;
// Without slots: what a lane takes at once, and as much behind it.
constexpr std::uint64_t kTreeBlocksAhead = 16;

// Hosts are counted from the root's.
struct TreePlace {
  int parent = -1;
  std::vector<int> children;
};

// A host's parent is its number without the lowest set bit; its children are its number with any
// lower bit set, the largest subtree first.
TreePlace binomial_place(int number, int hosts) {
  const int lowest = number == 0 ? hosts : number & -number;
  TreePlace place;
  if (number != 0) place.parent = number - lowest;
  int bit = 1;
  while (bit * 2 < lowest) bit *= 2;
  for (; bit >= 1; bit /= 2)
    if (bit < lowest && number + bit < hosts) place.children.push_back(number + bit);
  return place;
}

TreePlace chain_place(int number, int hosts) {
  TreePlace place{number - 1, {}};
  if (number + 1 < hosts) place.children.push_back(number + 1);
  return place;
}

using MakePlace = TreePlace (*)(int number, int hosts);

class BroadcastTree : public RingCollective {
 public:
  BroadcastTree(CollectiveSetup setup, int ring, const BlockPlan& plan, int lanes,
                MakePlace make_place)
      : RingCollective(std::move(setup), ring, plan.blocks),
        plan_(plan),
        lanes_(lanes),
        in_walk_(setup_.request.segments, element_bytes()),
        forward_walk_(in_walk_),
        out_walk_(in_walk_),
        copy_out_(result_copy(plan_.total_bytes)) {
    const Topology& topology = setup_.plane.topology();
    hosts_ = static_cast<int>(topology.leaders.size());
    const int root_host = topology.host_of[static_cast<std::size_t>(setup_.request.root)];
    number_ = (host_index(topology) - root_host + hosts_) % hosts_;
    if (is_root_host()) root_index_ = local_index_of_root(topology);
    if (is_lane()) join_tree(topology, root_host, make_place(number_, hosts_));
  }

 private:
  bool step() override {
    bool moved = forward_next() || fill_next() || receive_some();
    for (Sender& child : children_) moved |= child.step();
    return copy_out_next() || raise_done() || moved;
  }
  bool is_complete() const override { return done_ == blocks(); }

  bool is_root_host() const { return number_ == 0; }
  bool is_root() const { return is_root_host() && me_ == root_index_; }
  bool is_lane() const { return me_ < lanes_ && hosts_ > 1; }
  Range share(std::uint64_t block, int lane) const { return cut(plan_.size(block), lanes_, lane); }

  int local_index_of_root(const Topology& topology) const {
    for (std::size_t i = 0; i < topology.local_ranks.size(); ++i)
      if (topology.local_ranks[i] == setup_.request.root) return static_cast<int>(i);
    return -1;
  }

  void join_tree(const Topology& topology, int root_host, const TreePlace& place) {
    const std::vector<int> ranks = lane_ranks(topology, me_);
    const auto channel_at = [&](int number) -> Channel& {
      return setup_.plane.channel(ranks[static_cast<std::size_t>((number + root_host) % hosts_)],
                                  data_lane(ring(), 0));
    };
    if (place.parent >= 0) parent_.emplace(channel_at(place.parent));
    for (const int child : place.children) children_.emplace_back(channel_at(child));
  }

  std::optional<SegmentWalk::Piece> block_without_slot(SegmentWalk* walk, std::uint64_t block) {
    return without_slot(walk, plan_.begin(block), plan_.size(block));
  }

  bool fill_next() {
    if (!is_root() || filled_ == blocks()) return false;
    if (block_without_slot(&in_walk_, filled_)) {
      if (filled_ == done_ + kTreeBlocksAhead) return false;
    } else {
      if (!is_slot_free(filled_)) return false;
      std::byte* to = slot(me_, filled_);
      in_walk_.visit(plan_.begin(filled_), plan_.size(filled_),
                     [&](const std::byte* input, std::byte*, std::size_t size) {
                       setup_.kernels.copy(to, input, size);
                       to += size;
                     });
      count_copied(plan_.size(filled_));
    }
    raise(Flag::kReady, ++filled_);
    return true;
  }

  bool receive_some() {
    if (!parent_ || filled_ == blocks()) return false;
    const auto place = block_without_slot(&in_walk_, filled_);
    if (!place && !is_slot_free(filled_)) return false;
    const Range range = share(filled_, me_);
    std::byte* const to = place ? place->output : slot(me_, filled_) + range.begin;
    const auto outcome = parent_->step(to, range.size);
    if (outcome != Receiver::Outcome::kWhole) return outcome == Receiver::Outcome::kSome;
    count_copied(range.size);
    raise(Flag::kReady, ++filled_);
    return true;
  }

  // Hands the next block's share to the children's senders; on the root's host straight from where
  // the root has it.
  bool forward_next() {
    if (!is_lane() || forwarded_ == blocks()) return false;
    const int from = is_root_host() ? root_index_ : me_;
    if (!has_reached(from, Flag::kReady, forwarded_ + 1)) return false;
    const Range range = share(forwarded_, me_);
    const std::byte* begin = slot(from, forwarded_) + range.begin;
    if (const auto place = block_without_slot(&forward_walk_, forwarded_))
      begin = is_root() ? place->input : place->output;
    for (Sender& child : children_) child.add(begin, padded(range.size));
    ++forwarded_;
    return true;
  }

  bool is_here(std::uint64_t count) const {
    if (is_root_host()) return has_reached(root_index_, Flag::kReady, count);
    for (int lane = 0; lane < lanes_; ++lane)
      if (!has_reached(lane, Flag::kReady, count)) return false;
    return true;
  }

  bool copy_out_next() {
    if (out_ == blocks() || !is_here(out_ + 1)) return false;
    if (const auto place = block_without_slot(&out_walk_, out_)) {
      if (is_root() && place->input != place->output)
        copy_out_(place->output, place->input, place->bytes);
      ++out_;
      return true;
    }
    const int shares = is_root_host() ? 1 : lanes_;
    for (int lane = 0; lane < shares; ++lane) {
      const Range range = is_root_host() ? Range{0, plan_.size(out_)} : share(out_, lane);
      const std::byte* from = slot(is_root_host() ? root_index_ : lane, out_) + range.begin;
      out_walk_.visit(plan_.begin(out_) + range.begin, range.size,
                      [&](const std::byte* input, std::byte* output, std::size_t size) {
                        if (!is_root() || input != output) copy_out_(output, from, size);
                        from += size;
                      });
    }
    ++out_;
    return true;
  }

  // A block's slots are needed here until it is copied out and has left for every child.
  bool raise_done() {
    std::uint64_t count = out_;
    if (is_lane()) count = std::min(count, forwarded_);
    for (const Sender& child : children_) count = std::min(count, child.sent());
    if (count == done_) return false;
    raise(Flag::kDone, done_ = count);
    return true;
  }

  const BlockPlan plan_;
  const int lanes_;
  SegmentWalk in_walk_, forward_walk_, out_walk_;
  const CopyKernel copy_out_;
  int hosts_ = 1;
  int number_ = 0;  // of this host
  int root_index_ = -1;
  std::optional<Receiver> parent_;
  std::vector<Sender> children_;
  std::uint64_t filled_ = 0;     // blocks in this rank's own slot
  std::uint64_t forwarded_ = 0;  // handed to the children's senders
  std::uint64_t out_ = 0;        // copied out
  std::uint64_t done_ = 0;
};

std::unique_ptr<Collective> make_broadcast(CollectiveSetup setup, MakePlace make_place) {
  const BlockPlan plan = plan_blocks(setup.request, setup.plane.host().slot_bytes());
  const int ring = setup.rings.choose(plan.total_bytes);
  const int lanes = plan.total_bytes <= kOneLaneUpToBytes ? 1 : lanes_of(setup.plane.topology());
  return std::make_unique<BroadcastTree>(std::move(setup), ring, plan, lanes, make_place);
}

}  // namespace

std::unique_ptr<Collective> broadcast_tree(CollectiveSetup setup) {
  return make_broadcast(std::move(setup), binomial_place);
}

std::unique_ptr<Collective> broadcast_chain(CollectiveSetup setup) {
  return make_broadcast(std::move(setup), chain_place);
}

}  // namespace hv::runtime
