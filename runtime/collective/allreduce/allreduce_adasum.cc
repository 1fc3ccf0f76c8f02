// Allreduce by Adasum, pair by pair: in every stage two ranks exchange their whole vectors and both
// compute the same combination of them.
// SPDX-License-Identifier: Apache-2.0
//
// The stages are adasum_stages()'; the vector lies in the output all the time. In each:
//   1. send: on one host through this rank's slots, block by block (raise Ready); between hosts
//      straight from the vector through the pair's channel;
//   2. receive the peer's vector into memory of this collective's own (raise Done), and add up the
//      three dot products as far as it has come;
//   3. blend, when all is sent and received.
// Every stage counts as many blocks on every rank; who reads none in it is done with them at once.
// log2(n) stages (and two where n is no power of two), each B bytes out, B bytes in, and two passes
// over both vectors; B bytes of memory. Vectors are rounded to the type after every stage. Both
// ranks of a pair add in the same order, and so do all pairs with the same vectors: all ranks get
// the same bits.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/collective/allreduce/adasum.h"
#include "runtime/collective/allreduce/allreduce.h"
#include "runtime/collective/lanes.h"
#include "runtime/collective/piece_stream.h"

namespace hv::runtime {
namespace {

class AllreduceAdasum : public RingCollective {
 public:
  AllreduceAdasum(CollectiveSetup setup, int ring, const BlockPlan& plan,
                  std::vector<AdasumStage> stages)
      : RingCollective(std::move(setup), ring, plan.blocks * stages.size()),
        plan_(plan),
        stages_(std::move(stages)),
        segment_(setup_.request.segments[0]),
        type_(static_cast<int>(setup_.request.type)) {
    if (std::any_of(stages_.begin(), stages_.end(), [](const auto& stage) { return stage.blends; }))
      theirs_ = std::make_unique_for_overwrite<std::byte[]>(padded(plan_.total_bytes));
  }

 private:
  // Where this rank is: prepare ─► stage {move, blend} ... ─► scale ─► done.
  enum class Phase { kPrepare, kMove, kBlend, kScale, kDone };

  bool step() override {
    switch (phase_) {
      case Phase::kPrepare:
        if (is_prepared()) {
          begin_stage();
          return true;
        }
        return pass_piece([this](std::size_t at, std::size_t count) { prepare(at, count); });
      case Phase::kMove: {
        bool moved = send_some();
        moved |= receive_some();
        if (!is_exchange_over()) return moved;
        stage().blends ? begin_pass(Phase::kBlend) : end_stage();
        return true;
      }
      case Phase::kBlend:
        return pass_piece([this](std::size_t at, std::size_t count) { blend(at, count); });
      case Phase::kScale:
        return pass_piece([this](std::size_t at, std::size_t count) { scale(at, count); });
      default:
        return false;
    }
  }
  bool is_complete() const override { return phase_ == Phase::kDone; }

  // One piece of a pass over the whole vector; behind the last the next phase.
  template <class Work>
  bool pass_piece(Work work) {
    const std::size_t count = std::min(kPassBytes / element_bytes(), element_count() - passed_);
    work(passed_, count);
    passed_ += count;
    if (passed_ < element_count()) return true;
    if (phase_ == Phase::kScale) {
      phase_ = Phase::kDone;
    } else if (phase_ == Phase::kBlend) {
      end_stage();
    } else {
      begin_stage();
    }
    return true;
  }
  void begin_pass(Phase phase) {
    phase_ = phase;
    passed_ = 0;
  }
  void end_stage() {
    ++stage_;
    begin_stage();
  }
  std::byte* output_at(std::size_t element) const {
    return segment_.output + element * element_bytes();
  }

  const AdasumStage& stage() const { return stages_[stage_]; }
  std::size_t element_count() const { return static_cast<std::size_t>(segment_.count); }
  // Of this stage's block.
  std::uint64_t number(std::uint64_t block) const { return stage_ * plan_.blocks + block; }
  bool receives() const { return stage().takes || stage().blends; }

  bool is_prepared() const {
    return setup_.request.prescale == 1 && segment_.input == segment_.output;
  }
  void prepare(std::size_t at, std::size_t count) {
    const std::byte* const from = segment_.input + at * element_bytes();
    const double prescale = setup_.request.prescale;
    if (prescale != 1) {
      setup_.kernels.scale[type_](output_at(at), from, count, prescale);
    } else {
      setup_.kernels.copy(output_at(at), from, count * element_bytes());
    }
  }

  void begin_stage() {
    in_ = out_ = 0;
    received_ = dotted_ = 0;
    sums_ = {};
    peer_local_ = -1;
    receiver_.reset();
    sender_.reset();
    if (stage_ == stages_.size())
      return begin_pass(setup_.request.postscale == 1 ? Phase::kDone : Phase::kScale);
    phase_ = Phase::kMove;
    const Topology& topology = setup_.plane.topology();
    const auto local =
        std::find(topology.local_ranks.begin(), topology.local_ranks.end(), stage().peer);
    if (local != topology.local_ranks.end()) {
      peer_local_ = static_cast<int>(local - topology.local_ranks.begin());
    } else if (stage().peer >= 0) {
      Channel& channel = setup_.plane.channel(stage().peer, data_lane(ring(), 0));
      receiver_.emplace(channel);
      if (stage().sends) begin_sending(channel);
    }
    const bool reads_slots = peer_local_ >= 0 && receives();
    if (!reads_slots && plan_.blocks > 0) raise(Flag::kDone, number(plan_.blocks));
  }

  // A channel carries whole words; behind the vector there may be nothing to read.
  void begin_sending(Channel& channel) {
    const std::size_t rest = plan_.total_bytes % kWordBytes, whole = plan_.total_bytes - rest;
    if (rest > 0) std::memcpy(tail_, segment_.output + whole, rest);
    sender_.emplace(channel);
    sender_->add(segment_.output, whole);
    sender_->add(tail_, padded(rest));
  }

  bool send_some() {
    if (!stage().sends) return false;
    if (sender_) return sender_->step();
    if (in_ == plan_.blocks || !is_slot_free(number(in_))) return false;
    setup_.kernels.copy(slot(me_, number(in_)), segment_.output + plan_.begin(in_),
                        plan_.size(in_));
    count_copied(plan_.size(in_));
    raise(Flag::kReady, number(++in_));
    return true;
  }

  bool receive_some() {
    if (!receives()) return false;
    const bool moved = receiver_ ? receive_from_channel() : receive_from_slot();
    if (moved && stage().blends) add_dots();
    return moved;
  }
  std::byte* incoming() const { return stage().takes ? segment_.output : theirs_.get(); }

  bool receive_from_slot() {
    if (out_ == plan_.blocks || !has_reached(peer_local_, Flag::kReady, number(out_ + 1)))
      return false;
    setup_.kernels.copy(incoming() + plan_.begin(out_), slot(peer_local_, number(out_)),
                        plan_.size(out_));
    received_ += plan_.size(out_);
    raise(Flag::kDone, number(++out_));
    return true;
  }

  bool receive_from_channel() {
    if (received_ == padded(plan_.total_bytes)) return false;
    const auto outcome = receiver_->step(incoming(), plan_.total_bytes);
    received_ = receiver_->position();
    return outcome != Receiver::Outcome::kNothing;
  }

  // As far as whole rows of lanes have come.
  void add_dots() {
    const std::size_t have = std::min(received_, plan_.total_bytes) / element_bytes();
    const std::size_t until = have == element_count() ? have : have / kDotLanes * kDotLanes;
    const std::size_t at = dotted_ * element_bytes();
    const std::byte* const a = stage().is_lower ? segment_.output : theirs_.get();
    const std::byte* const b = stage().is_lower ? theirs_.get() : segment_.output;
    setup_.kernels.dot[type_](a + at, b + at, until - dotted_, &sums_);
    dotted_ = until;
  }

  bool is_exchange_over() const {
    if (stage().peer < 0) return true;
    const bool is_sent = !stage().sends || (sender_ ? sender_->sent() == 2 : in_ == plan_.blocks);
    const std::size_t due = receiver_ ? padded(plan_.total_bytes) : plan_.total_bytes;
    return is_sent && (!receives() || received_ == due);
  }

  void blend(std::size_t at, std::size_t count) {
    const AdasumFactors factors = adasum_factors(sums_);
    const double own = stage().is_lower ? factors.a : factors.b;
    const double other = stage().is_lower ? factors.b : factors.a;
    setup_.kernels.blend[type_](output_at(at), output_at(at), theirs_.get() + at * element_bytes(),
                                count, own, other);
  }

  void scale(std::size_t at, std::size_t count) {
    setup_.kernels.scale[type_](output_at(at), output_at(at), count, setup_.request.postscale);
  }

  const BlockPlan plan_;
  const std::vector<AdasumStage> stages_;
  const Segment segment_;
  const int type_;
  std::unique_ptr<std::byte[]> theirs_;
  Phase phase_ = Phase::kPrepare;
  std::size_t passed_ = 0;  // elements, of a pass over the whole vector
  std::size_t stage_ = 0;
  // Of the stage:
  int peer_local_ = -1;  // the peer's local index; -1: it is on another host
  // From and to a peer on another host.
  std::optional<Receiver> receiver_;
  std::optional<Sender> sender_;
  std::byte tail_[kWordBytes] = {};  // the vector's last bytes, up to a whole word
  std::uint64_t in_ = 0, out_ = 0;   // blocks that were copied to slots, and from the peer's
  std::size_t received_ = 0;         // bytes; of a channel, padded in the end
  std::size_t dotted_ = 0;           // elements
  DotSums sums_;
};

}  // namespace

std::unique_ptr<Collective> allreduce_adasum(CollectiveSetup setup) {
  const BlockPlan plan = plan_blocks(setup.request, setup.plane.host().slot_bytes());
  const Topology& topology = setup.plane.topology();
  std::vector<AdasumStage> stages = adasum_stages(topology.rank, topology.size);
  const int ring = setup.rings.choose(plan.total_bytes);
  return std::make_unique<AllreduceAdasum>(std::move(setup), ring, plan, std::move(stages));
}

}  // namespace hv::runtime
