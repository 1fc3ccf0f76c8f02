// Carries out a schedule (cross_schedule.h) for every share.
// SPDX-License-Identifier: Apache-2.0
//
// Two tracks with channels of their own take the shares in turn, so that two are under way at once
// and yet each channel carries them in order. Within a track a step is over when all of it has been
// sent and received; what is received may be folded as it arrives, except where that would
// overwrite what is still to be sent.
#include <algorithm>
#include <array>
#include <deque>
#include <optional>

#include "runtime/collective/cross/cross_schedule.h"
#include "runtime/collective/cross/cross_stage.h"

namespace hv::runtime {
namespace {

class Track {
 public:
  Track(const CrossTerms& terms, int phase, MakeSchedule make)
      : terms_(terms),
        make_(make),
        phase_(phase),
        hosts_(static_cast<int>(terms.plane.topology().leaders.size())),
        me_(host_index(terms.plane.topology())),
        ranks_(lane_ranks(terms.plane.topology(), terms.lane)) {}

  void add(std::byte* share, std::size_t bytes) { shares_.push_back({share, bytes}); }
  std::uint64_t completed() const { return completed_; }

  bool step() {
    if (shares_.empty()) return false;
    if (schedule_.empty()) schedule_ = make_(hosts_, me_, shares_.front().bytes);
    const CrossStep& now = schedule_[step_];
    const bool has_sent = now.to >= 0 && send(now);
    const bool is_sent = now.to < 0 || sent_ == padded(now.out.size);
    const bool overlaps =
        now.out.begin < now.in.begin + now.in.size && now.in.begin < now.out.begin + now.out.size;
    const bool has_received = now.from >= 0 && (is_sent || !overlaps) && receive(now);
    const bool is_received = now.from < 0 || received_ == padded(now.in.size);
    if (!is_sent || !is_received) return has_sent || has_received;
    sent_ = received_ = 0;
    copier_.reset();
    if (++step_ < schedule_.size()) return true;
    step_ = 0;
    schedule_.clear();
    shares_.pop_front();
    ++completed_;
    return true;
  }

 private:
  struct Share {
    std::byte* at;
    std::size_t bytes;
  };

  Channel& channel(int host) {
    return terms_.plane.channel(ranks_[static_cast<std::size_t>(host)],
                                data_lane(terms_.ring, phase_));
  }

  bool send(const CrossStep& now) {
    Channel& to = channel(now.to);
    const std::size_t part =
        std::min(padded(now.out.size) - sent_, to.writable() / kWordBytes * kWordBytes);
    if (part == 0) return false;
    to.write(shares_.front().at + now.out.begin + sent_, part);
    sent_ += part;
    return true;
  }

  bool receive(const CrossStep& now) {
    if (now.arrival == CrossStep::Arrival::kCopy) return receive_copy(now);
    Channel& from = channel(now.from);
    const auto arrived = from.readable();
    const std::size_t part =
        std::min(padded(now.in.size) - received_, arrived.size() / kWordBytes * kWordBytes);
    if (part == 0) return false;
    std::byte* mine = shares_.front().at + now.in.begin + received_;
    const std::size_t real = std::min(part, now.in.size - received_);
    const void* const sources[] = {mine, arrived.data()};
    terms_.reduce(mine, sources, 2, real / element_size(terms_.type),
                  now.arrival == CrossStep::Arrival::kFinish ? terms_.finish : Finish{});
    from.consume(part);
    received_ += part;
    return true;
  }

  bool receive_copy(const CrossStep& now) {
    if (received_ == padded(now.in.size)) return false;
    if (!copier_) copier_.emplace(channel(now.from));
    const auto outcome = copier_->step(shares_.front().at + now.in.begin, now.in.size);
    received_ = copier_->position();
    return outcome != Receiver::Outcome::kNothing;
  }

  const CrossTerms terms_;
  const MakeSchedule make_;
  const int phase_, hosts_, me_;
  const std::vector<int> ranks_;  // of this lane, by host
  std::deque<Share> shares_;      // not completed
  CrossSchedule schedule_;        // of the first of them; empty: not begun
  std::size_t step_ = 0;
  std::size_t sent_ = 0, received_ = 0;  // of this step, padding included
  std::optional<Receiver> copier_;       // of a step that takes what comes as it is
  std::uint64_t completed_ = 0;
};

class CrossScheduled : public CrossStage {
 public:
  CrossScheduled(const CrossTerms& terms, MakeSchedule make)
      : tracks_{Track(terms, 0, make), Track(terms, 1, make)} {}

  void add(std::byte* share, std::size_t bytes) override {
    tracks_[added_++ % tracks_.size()].add(share, bytes);
  }
  bool step() override {
    const bool first = tracks_[0].step(), second = tracks_[1].step();
    return first || second;
  }
  // Shares before the first one that is not done: the tracks hold the even and the odd ones.
  std::uint64_t completed() const override {
    return std::min(2 * tracks_[0].completed(), 2 * tracks_[1].completed() + 1);
  }

 private:
  std::array<Track, kLanesPerRing> tracks_;
  std::uint64_t added_ = 0;
};

}  // namespace

std::unique_ptr<CrossStage> cross_ring(const CrossTerms& terms) {
  return std::make_unique<CrossScheduled>(terms, ring_schedule);
}
std::unique_ptr<CrossStage> cross_halving(const CrossTerms& terms) {
  return std::make_unique<CrossScheduled>(terms, halving_schedule);
}
std::unique_ptr<CrossStage> cross_doubling(const CrossTerms& terms) {
  return std::make_unique<CrossScheduled>(terms, doubling_schedule);
}
std::unique_ptr<CrossStage> cross_tree(const CrossTerms& terms) {
  return std::make_unique<CrossScheduled>(terms, tree_schedule);
}

}  // namespace hv::runtime
