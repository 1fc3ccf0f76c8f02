// Between hosts, scatter and gather: each host folds one part of every share and sends the result
// round.
// SPDX-License-Identifier: Apache-2.0
//
// For each share, cut into H parts:
//   1. scatter: part j goes to host j (lane phase 0);
//   2. fold: this host's part with the H-1 that arrive, in host order;
//   3. gather: the folded part goes to all others (phase 1), and theirs are written over the other
//      parts.
// The phases have channels of their own, so that step 1 of a later share and step 3 of an earlier
// one can be under way at once and each channel still carries shares in order.
#include <deque>

#include "runtime/collective/cross/cross_stage.h"
#include "runtime/collective/lanes.h"

namespace hv::runtime {
namespace {

class CrossScatter : public CrossStage {
 public:
  explicit CrossScatter(const CrossTerms& terms)
      : hosts_(static_cast<int>(terms.plane.topology().leaders.size())),
        me_(host_index(terms.plane.topology())),
        gather_in_(channels(terms, 1)),
        folder_(terms, channels(terms, 0), me_) {
    for (Channel* channel : channels(terms, 0))
      scatter_out_.emplace_back(channel ? Sender(*channel) : Sender(*gather_in_[other()]));
    for (Channel* channel : gather_in_) {
      Channel& used = channel ? *channel : *gather_in_[other()];
      gather_out_.emplace_back(used);
      gathered_.push_back({Receiver(used)});
    }
  }

  void add(std::byte* share, std::size_t bytes) override {
    shares_.push_back({share, bytes});
    for (int host = 0; host < hosts_; ++host) {
      if (host == me_) continue;
      const Range part = cut(bytes, hosts_, host);
      scatter_out_[static_cast<std::size_t>(host)].add(share + part.begin, padded(part.size));
    }
  }

  bool step() override {
    bool moved = false;
    for (const int host : others_from_next(hosts_, me_)) {
      moved |= scatter_out_[static_cast<std::size_t>(host)].step();
      moved |= gather_out_[static_cast<std::size_t>(host)].step();
    }
    return fold() || gather() || complete() || moved;
  }

  std::uint64_t completed() const override { return completed_; }

 private:
  struct Share {
    std::byte* at;
    std::size_t bytes;
  };
  struct Gathered {
    Receiver receiver;
    std::uint64_t shares = 0;  // whose part of that host has arrived
  };

  static std::vector<Channel*> channels(const CrossTerms& terms, int phase) {
    std::vector<Channel*> result;
    const Topology& topology = terms.plane.topology();
    for (const int rank : lane_ranks(topology, terms.lane))
      result.push_back(rank == topology.rank
                           ? nullptr
                           : &terms.plane.channel(rank, data_lane(terms.ring, phase)));
    return result;
  }
  // A host that is not this one, to fill this one's unused place in the tables of senders.
  std::size_t other() const { return me_ == 0 ? 1 : 0; }
  const Share& share(std::uint64_t number) const {
    return shares_[static_cast<std::size_t>(number - completed_)];
  }
  std::uint64_t added() const { return completed_ + shares_.size(); }

  bool fold() {
    if (folded_ == added()) return false;
    const Range part = cut(share(folded_).bytes, hosts_, me_);
    if (part.size > 0 && !folder_.step(share(folded_).at + part.begin, part.size, &position_))
      return false;
    if (position_ < padded(part.size)) return true;
    for (int host = 0; host < hosts_; ++host)
      if (host != me_)
        gather_out_[static_cast<std::size_t>(host)].add(share(folded_).at + part.begin,
                                                        padded(part.size));
    position_ = 0;
    ++folded_;
    return true;
  }

  // A host's result may arrive only after our part of that share has gone to it, so nothing unsent
  // is overwritten: that host could not have folded without it.
  bool gather() {
    bool moved = false;
    for (int host = 0; host < hosts_; ++host) {
      Gathered& from = gathered_[static_cast<std::size_t>(host)];
      if (host == me_ || from.shares == added()) continue;
      const Range part = cut(share(from.shares).bytes, hosts_, host);
      const auto outcome = from.receiver.step(share(from.shares).at + part.begin, part.size);
      moved |= outcome != Receiver::Outcome::kNothing;
      if (outcome == Receiver::Outcome::kWhole) ++from.shares;
    }
    return moved;
  }

  bool complete() {
    if (shares_.empty() || folded_ == completed_) return false;
    for (int host = 0; host < hosts_; ++host) {
      if (host == me_) continue;
      if (gathered_[static_cast<std::size_t>(host)].shares <= completed_) return false;
      if (gather_out_[static_cast<std::size_t>(host)].sent() <= completed_) return false;
    }
    shares_.pop_front();
    ++completed_;
    return true;
  }

  const int hosts_;
  const int me_;
  std::vector<Channel*> gather_in_;  // by host, as all tables here
  Folder folder_;
  std::vector<Sender> scatter_out_, gather_out_;
  std::vector<Gathered> gathered_;
  std::deque<Share> shares_;  // not completed
  std::size_t position_ = 0;  // in the part being folded
  std::uint64_t folded_ = 0;  // shares whose own part is folded
  std::uint64_t completed_ = 0;
};

}  // namespace

std::unique_ptr<CrossStage> cross_scatter(const CrossTerms& terms) {
  return std::make_unique<CrossScatter>(terms);
}

}  // namespace hv::runtime
