// Between hosts, exchange: every host sends its share to all others and folds all of them itself.
// SPDX-License-Identifier: Apache-2.0
//
// For each share: 1. send it to the H-1 others; 2. fold theirs into it as they arrive, in host
// order. The fold overwrites the share, so it waits until the share has gone out to everybody.
#include <deque>

#include "runtime/collective/cross/cross_stage.h"
#include "runtime/collective/lanes.h"

namespace hv::runtime {
namespace {

class CrossExchange : public CrossStage {
 public:
  explicit CrossExchange(const CrossTerms& terms)
      : folder_(terms, channels(terms), host_index(terms.plane.topology())) {
    const std::vector<Channel*> all = channels(terms);
    for (const int host :
         others_from_next(static_cast<int>(all.size()), host_index(terms.plane.topology())))
      senders_.emplace_back(*all[static_cast<std::size_t>(host)]);
  }

  void add(std::byte* share, std::size_t bytes) override {
    shares_.push_back({share, bytes});
    for (Sender& sender : senders_) sender.add(share, padded(bytes));
  }

  bool step() override {
    bool moved = false;
    for (Sender& sender : senders_) moved |= sender.step();
    return fold() || moved;
  }

  std::uint64_t completed() const override { return completed_; }

 private:
  struct Share {
    std::byte* at;
    std::size_t bytes;
  };

  static std::vector<Channel*> channels(const CrossTerms& terms) {
    std::vector<Channel*> result;
    const Topology& topology = terms.plane.topology();
    for (const int rank : lane_ranks(topology, terms.lane))
      result.push_back(
          rank == topology.rank ? nullptr : &terms.plane.channel(rank, data_lane(terms.ring, 0)));
    return result;
  }

  bool is_sent(std::uint64_t share) const {
    for (const Sender& sender : senders_)
      if (sender.sent() <= share) return false;
    return true;
  }

  bool fold() {
    if (shares_.empty() || !is_sent(completed_)) return false;
    const Share share = shares_.front();
    if (share.bytes > 0 && !folder_.step(share.at, share.bytes, &position_)) return false;
    if (position_ < padded(share.bytes)) return true;
    shares_.pop_front();
    position_ = 0;
    ++completed_;
    return true;
  }

  Folder folder_;
  std::vector<Sender> senders_;
  std::deque<Share> shares_;  // not completed
  std::size_t position_ = 0;  // in the first of them
  std::uint64_t completed_ = 0;
};

}  // namespace

std::unique_ptr<CrossStage> cross_exchange(const CrossTerms& terms) {
  return std::make_unique<CrossExchange>(terms);
}

}  // namespace hv::runtime
