// Allgather, contributions of any size: every rank's contribution goes through the slots piece by
// piece.
// SPDX-License-Identifier: Apache-2.0
//
// On each host a rank's contribution is carried by one local rank: on its own host by itself, on
// another by the rank with the same local number (modulo that host's ranks). A carrier's slot holds
// one piece of each contribution that it carries. For piece k of everybody:
//   1. copy the own piece into the slot and send it to its carriers on the other hosts;
//   2. receive the pieces that this rank carries for others into the slot; when all are there,
//   raise Ready;
//   3. copy every rank's piece k from its carrier's slot to its place in the output, where this
//   rank has one (who has joined wants no result); raise Done.
// A rank that is alone on its host needs no slots: it sends from its input and receives into its
// output. Ranks whose contribution has ended take part with empty pieces. Per rank: its
// contribution out to H-1 hosts, what it carries in, the whole result copied once.
//
// The more contributions one rank carries, the smaller are the pieces: at the least a word. A rank
// that carries more than its slot has words (16,384 of 128 KiB) makes the job's shape unsupported.
#include <algorithm>
#include <string>
#include <vector>

#include "runtime/collective/allgather.h"
#include "runtime/collective/carriers.h"
#include "runtime/collective/lanes.h"
#include "runtime/collective/piece_stream.h"

namespace hv::runtime {
namespace {

// Without slots: of everybody's.
constexpr std::uint64_t kPiecesAhead = 16;

class AllgatherPieces : public RingCollective {
 public:
  AllgatherPieces(CollectiveSetup setup, int ring, std::uint64_t pieces, std::size_t piece_bytes,
                  Carriers carriers)
      : RingCollective(std::move(setup), ring, pieces),
        piece_bytes_(piece_bytes),
        carriers_(std::move(carriers)) {
    const Topology& topology = setup_.plane.topology();
    std::size_t start = 0;
    for (const std::int64_t count : setup_.request.counts_by_rank) {
      starts_.push_back(start);
      start += static_cast<std::size_t>(count) * element_bytes();
    }
    starts_.push_back(start);
    copy_out_ = result_copy(start);
    needs_slots_ = host_.ranks() > 1 || setup_.request.segments[0].output == nullptr;
    for (int rank = 0; rank < topology.size; ++rank) {
      if (carriers_.carrier_of[static_cast<std::size_t>(rank)] != me_ || rank == topology.rank)
        continue;
      carried_.push_back({rank, Receiver(setup_.plane.channel(rank, data_lane(this->ring(), 0)))});
    }
    for (const int carrier : carriers_.remote_carriers)
      senders_.emplace_back(setup_.plane.channel(carrier, data_lane(this->ring(), 0)));
  }

 private:
  struct Carried {
    int rank;
    Receiver receiver;
    std::uint64_t pieces = 0;  // arrived whole
  };

  bool step() override {
    bool moved = copy_in_next();
    for (Sender& sender : senders_) moved |= sender.step();
    for (Carried& from : carried_) moved |= receive_some(&from);
    moved |= raise_ready();
    return copy_out_next() || raise_done() || moved;
  }
  bool is_complete() const override { return done_ == blocks(); }

  int rank() const { return setup_.plane.topology().rank; }
  Range piece(int of_rank, std::uint64_t number) const {
    const auto index = static_cast<std::size_t>(of_rank);
    const std::size_t size = starts_[index + 1] - starts_[index];
    const std::size_t begin = std::min(size, static_cast<std::size_t>(number) * piece_bytes_);
    return {begin, std::min(size - begin, piece_bytes_)};
  }
  std::byte* place(int of_rank, std::uint64_t number) const {
    const auto index = static_cast<std::size_t>(of_rank);
    return slot(carriers_.carrier_of[index], number) +
           static_cast<std::size_t>(carriers_.place_of[index]) * piece_bytes_;
  }

  std::byte* output_of(int of_rank, std::uint64_t number) const {
    return setup_.request.segments[0].output + starts_[static_cast<std::size_t>(of_rank)] +
           piece(of_rank, number).begin;
  }

  bool copy_in_next() {
    if (in_ == blocks()) return false;
    const Range mine = piece(rank(), in_);
    const std::byte* from = setup_.request.segments[0].input + mine.begin;
    // Channels carry whole words.
    if (needs_slots_ || mine.size % kWordBytes != 0) {
      if (!is_slot_free(in_)) return false;
      if (mine.size > 0) setup_.kernels.copy(place(rank(), in_), from, mine.size);
      count_copied(mine.size);
      from = place(rank(), in_);
    } else if (in_ == done_ + kPiecesAhead) {
      return false;
    }
    for (Sender& sender : senders_) sender.add(from, padded(mine.size));
    ++in_;
    return true;
  }

  // in_ > pieces: the slot is free for that piece.
  bool receive_some(Carried* from) {
    if (from->pieces == in_) return false;
    const Range range = piece(from->rank, from->pieces);
    std::byte* const to =
        needs_slots_ ? place(from->rank, from->pieces) : output_of(from->rank, from->pieces);
    const auto outcome = from->receiver.step(to, range.size);
    if (outcome != Receiver::Outcome::kWhole) return outcome == Receiver::Outcome::kSome;
    count_copied(range.size);
    ++from->pieces;
    return true;
  }

  bool raise_ready() {
    std::uint64_t count = in_;
    for (const Carried& from : carried_) count = std::min(count, from.pieces);
    if (count == ready_) return false;
    raise(Flag::kReady, ready_ = count);
    return true;
  }

  bool copy_out_next() {
    if (out_ == blocks() || !have_all_reached(Flag::kReady, out_ + 1)) return false;
    if (setup_.request.segments[0].output != nullptr) {
      // From the next rank on, and what is its own from its input: where two cores read the same
      // lines of a slot at once, a copy takes twice as long.
      if (needs_slots_)
        for (const int from : others_from_next(setup_.plane.topology().size, rank()))
          copy_out(from, place(from, out_));
      copy_out(rank(), setup_.request.segments[0].input + piece(rank(), out_).begin);
    }
    ++out_;
    return true;
  }

  void copy_out(int of_rank, const std::byte* from) {
    const std::size_t size = piece(of_rank, out_).size;
    std::byte* const to = output_of(of_rank, out_);
    if (size > 0 && to != from) copy_out_(to, from, size);
  }

  bool raise_done() {
    std::uint64_t count = out_;
    for (const Sender& sender : senders_) count = std::min(count, sender.sent());
    if (count == done_) return false;
    raise(Flag::kDone, done_ = count);
    return true;
  }

  const std::size_t piece_bytes_;
  const Carriers carriers_;
  std::vector<std::size_t>
      starts_;  // byte of the output where each rank's contribution begins, and the end
  CopyKernel copy_out_ = nullptr;
  bool needs_slots_ = true;
  std::vector<Carried> carried_;
  std::vector<Sender> senders_;
  std::uint64_t in_ = 0, ready_ = 0, out_ = 0, done_ = 0;  // pieces
};

}  // namespace

std::unique_ptr<Collective> allgather_pieces(CollectiveSetup setup) {
  Carriers carriers = plan_carriers(setup.plane.topology());
  const std::size_t piece = piece_bytes(setup.plane.host().slot_bytes(), carriers.most);
  if (piece == 0)
    return refused("gather from hosts this uneven: one rank would carry the rows of " +
                   std::to_string(carriers.most) + " ranks; start more ranks on the smallest host");
  std::size_t largest = 0, total = 0;
  for (const std::int64_t count : setup.request.counts_by_rank) {
    const std::size_t bytes = static_cast<std::size_t>(count) * element_size(setup.request.type);
    largest = std::max(largest, bytes);
    total += bytes;
  }
  const int ring = setup.rings.choose(total);
  return std::make_unique<AllgatherPieces>(std::move(setup), ring, (largest + piece - 1) / piece,
                                           piece, std::move(carriers));
}

}  // namespace hv::runtime
