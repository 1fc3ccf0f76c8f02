// Alltoall, splits of any size: every rank writes one stream for its host and one to each rank
// elsewhere.
// SPDX-License-Identifier: Apache-2.0
//
// A rank knows what it sends to whom, and learns from the streams' heads what it gets:
//   1. head: block 0 of a rank's slots tells each local rank how many rows are for it; a channel's
//      first word tells a remote rank the same. When all heads are read, the caller makes room.
//   2. inside the host: a rank's blocks hold what it has for its local peers, one after the other,
//      beginning with the next local rank, so that not all read or write the same rank's part at
//      once. Each copies its part of every block out; raise Done. Where all of it fits behind the
//      head, it lies there, and nobody waits a second time.
//   3. between hosts: the first bytes together with the head, the others straight from the input
//   into the peer's channel, and from there to the output.
//   4. what a rank has for itself it copies once.
// Per rank: what is for the host copied in and out, what is for elsewhere sent once. Blocks are
// counted for the longest stream that may be; the end of what is really there raises all of them at
// once.
#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/collective/alltoall_room.h"
#include "runtime/collective/lanes.h"
#include "runtime/collective/piece_stream.h"
#include "runtime/collective/registry.h"
#include "runtime/collective/ring_collective.h"
#include "runtime/collective/segment_walk.h"

namespace hv::runtime {
namespace {

// So many bytes, whole words, go to another host in one message with the head: a copy costs less
// than a message. All of them are copied in one step.
constexpr std::size_t kTogetherBytes = 32 << 10, kAllTogetherBytes = 256 << 10;

// Where each rank's part begins, in bytes.
std::vector<std::size_t> starts_of(const std::vector<std::int64_t>& counts, std::size_t row_bytes) {
  std::vector<std::size_t> starts;
  std::size_t start = 0;
  for (const std::int64_t count : counts) {
    starts.push_back(start);
    start += static_cast<std::size_t>(count) * row_bytes;
  }
  return starts;
}

std::uint64_t blocks_for(std::size_t bytes, std::size_t slot_bytes) {
  return (bytes + slot_bytes - 1) / slot_bytes;
}

class AlltoallStreams : public RingCollective {
 public:
  AlltoallStreams(CollectiveSetup setup, int ring, std::uint64_t blocks)
      : RingCollective(std::move(setup), ring, blocks),
        locals_(host_.ranks()),
        row_bytes_(static_cast<std::size_t>(setup_.request.row_counts[0]) * element_bytes()),
        input_starts_(starts_of(setup_.request.splits, row_bytes_)),
        stream_(plan_stream()),
        walk_(stream_, 1),
        received_(setup_.request.splits.size()),
        slices_(static_cast<std::size_t>(locals_)) {
    for (const Segment& part : stream_) stream_bytes_ += static_cast<std::size_t>(part.count);
    const Topology& topology = setup_.plane.topology();
    for (const int peer : others_from_next(topology.size, topology.rank)) {
      if (topology.host_of[static_cast<std::size_t>(peer)] !=
          topology.host_of[static_cast<std::size_t>(topology.rank)])
        remotes_.emplace_back(peer, setup_.plane.channel(peer, data_lane(this->ring(), 0)));
    }
    received_[static_cast<std::size_t>(topology.rank)] = split(topology.rank);
  }

 private:
  // A rank of another host: what goes there, and what comes from there.
  struct Remote {
    Remote(int peer, Channel& to) : rank(peer), channel(&to), sender(to), receiver(to) {}
    int rank;
    Channel* channel;
    Sender sender;
    Receiver receiver;
    std::vector<std::byte> first{};   // sent: the head, how many rows, and the first bytes
    std::byte tail[kWordBytes] = {};  // sent: the last bytes, up to a whole word
    std::uint64_t ranges = 0;
    bool is_head_read = false;
    bool is_all_read = false;
  };
  struct Slice {
    std::size_t begin = 0;  // in a local peer's stream
    std::size_t size = 0;
    bool is_behind_head = false;
  };

  bool step() override {
    if (!has_begun_) begin();
    bool moved = copy_in_next();
    for (Remote& remote : remotes_) moved |= remote.sender.step();
    if (room_ == nullptr && !is_empty_) return read_heads() || moved;
    for (Remote& remote : remotes_) moved |= receive_some(&remote);
    return copy_out_next() || moved;
  }
  bool is_complete() const override {
    return done_ == blocks() && in_ == blocks() &&
           std::all_of(remotes_.begin(), remotes_.end(), [this](const Remote& remote) {
             return remote.sender.sent() == remote.ranges && remote.is_all_read;
           });
  }

  std::int64_t split(int rank) const {
    return setup_.request.splits[static_cast<std::size_t>(rank)];
  }
  std::size_t bytes_to(int rank) const {
    return static_cast<std::size_t>(split(rank)) * row_bytes_;
  }
  std::size_t bytes_from(int rank) const {
    return static_cast<std::size_t>(received_[static_cast<std::size_t>(rank)]) * row_bytes_;
  }
  const std::byte* input_for(int rank) const {
    return setup_.request.segments[0].input + input_starts_[static_cast<std::size_t>(rank)];
  }
  std::byte* output_from(int rank) const {
    return room_ + output_starts_[static_cast<std::size_t>(rank)];
  }
  int local_rank(int local) const {
    return setup_.plane.topology().local_ranks[static_cast<std::size_t>(local)];
  }

  // What is for the local peers, in bytes, beginning with the next.
  std::vector<Segment> plan_stream() const {
    std::vector<Segment> parts;
    for (const int local : others_from_next(locals_, me_)) {
      const int rank = local_rank(local);
      parts.push_back({input_for(rank), nullptr, static_cast<std::int64_t>(bytes_to(rank))});
    }
    return parts;
  }

  void begin() {
    has_begun_ = true;
    for (Remote& remote : remotes_) {
      const std::size_t most =
          std::min(kTogetherBytes, kAllTogetherBytes / remotes_.size() / kWordBytes * kWordBytes);
      const std::size_t bytes = bytes_to(remote.rank);
      const std::size_t together = std::min(bytes, most), tail = bytes % kWordBytes;
      const std::byte* const from = input_for(remote.rank);
      remote.first.resize(kWordBytes + padded(together));
      const std::int64_t rows = split(remote.rank);
      std::memcpy(remote.first.data(), &rows, kWordBytes);
      if (together > 0) std::memcpy(remote.first.data() + kWordBytes, from, together);
      remote.sender.add(remote.first.data(), remote.first.size());
      remote.ranges = 1;
      if (together == bytes) continue;
      if (tail > 0) std::memcpy(remote.tail, from + (bytes - tail), tail);
      remote.sender.add(from + together, bytes - together - tail);
      remote.sender.add(remote.tail, padded(tail));
      remote.ranges = 3;
    }
  }

  // Block 0 is the head; behind it come this rank's own blocks, and nothing.
  bool copy_in_next() {
    if (in_ == blocks() || !is_slot_free(in_)) return false;
    const std::size_t slot_bytes = host_.slot_bytes();
    const bool is_together = fits_behind_head(stream_bytes_);
    if (in_ == 0) {
      std::vector<std::int64_t> head;
      for (int local = 0; local < locals_; ++local) head.push_back(split(local_rank(local)));
      std::memcpy(slot(me_, 0), head.data(), head_bytes());
      if (is_together) copy_stream(0, stream_bytes_, slot(me_, 0) + head_bytes());
    } else {
      const std::size_t from = static_cast<std::size_t>(in_ - 1) * slot_bytes;
      copy_stream(from, std::min(stream_bytes_ - from, slot_bytes), slot(me_, in_));
    }
    ++in_;
    if (is_together || in_ == 1 + blocks_for(stream_bytes_, slot_bytes)) in_ = blocks();
    raise(Flag::kReady, in_);
    return true;
  }

  std::size_t head_bytes() const { return static_cast<std::size_t>(locals_) * kWordBytes; }
  bool fits_behind_head(std::size_t stream_bytes) const {
    return stream_bytes <= host_.slot_bytes() - head_bytes();
  }
  void copy_stream(std::size_t from, std::size_t bytes, std::byte* to) {
    count_copied(bytes);
    walk_.visit(from, bytes, [&](const std::byte* input, std::byte*, std::size_t size) {
      setup_.kernels.copy(to, input, size);
      to += size;
    });
  }

  bool read_heads() {
    bool are_all_read = true, moved = false;
    for (Remote& remote : remotes_) {
      moved |= read_head(&remote);
      are_all_read &= remote.is_head_read;
    }
    if (!are_all_read || !have_all_reached(Flag::kReady, 1)) return moved;
    for (int local = 0; local < locals_; ++local) {
      if (local != me_) read_local_head(local);
    }
    return make_room();
  }

  bool read_head(Remote* remote) {
    const auto arrived = remote->channel->readable();
    if (remote->is_head_read || arrived.size() < kWordBytes) return false;
    std::memcpy(&received_[static_cast<std::size_t>(remote->rank)], arrived.data(), kWordBytes);
    remote->channel->consume(kWordBytes);
    remote->is_head_read = true;
    return true;
  }

  void read_local_head(int local) {
    // Read once: what is checked later must be what was used here.
    std::vector<std::int64_t> head(static_cast<std::size_t>(locals_));
    std::memcpy(head.data(), slot(local, 0), head_bytes());
    const auto rank = static_cast<std::size_t>(local_rank(local));
    const std::int64_t most = setup_.request.counts_by_rank[rank];
    for (const std::int64_t count : head) {
      if (count >= 0 && count <= most) continue;
      received_[rank] = count;  // make_room() refuses it
      return;
    }
    received_[rank] = head[static_cast<std::size_t>(me_)];
    Slice& slice = slices_[static_cast<std::size_t>(local)];
    std::size_t stream_bytes = 0;
    for (const int at : others_from_next(locals_, local)) {
      const auto bytes = static_cast<std::size_t>(head[static_cast<std::size_t>(at)]) * row_bytes_;
      if (at == me_) slice = {stream_bytes, bytes};
      stream_bytes += bytes;
    }
    slice.is_behind_head = fits_behind_head(stream_bytes);
    if (slice.size > 0 && !slice.is_behind_head)
      longest_slice_end_ = std::max(longest_slice_end_, slice.begin + slice.size);
  }

  bool make_room() {
    if (Status status = make_alltoall_room(setup_.request, received_, &room_); !status.ok()) {
      give_up(std::move(status));
      return false;
    }
    is_empty_ = row_bytes_ == 0 || std::all_of(received_.begin(), received_.end(),
                                               [](auto rows) { return rows == 0; });
    output_starts_ = starts_of(received_, row_bytes_);
    const int self = setup_.plane.topology().rank;
    if (bytes_to(self) > 0) std::memcpy(output_from(self), input_for(self), bytes_to(self));
    for (int local = 0; local < locals_; ++local) {
      const Slice& slice = slices_[static_cast<std::size_t>(local)];
      if (!slice.is_behind_head || slice.size == 0) continue;
      setup_.kernels.copy(output_from(local_rank(local)),
                          slot(local, 0) + head_bytes() + slice.begin, slice.size);
    }
    raise_done(1);
    return true;
  }

  bool receive_some(Remote* remote) {
    if (remote->is_all_read) return false;
    const auto outcome = remote->receiver.step(output_from(remote->rank), bytes_from(remote->rank));
    remote->is_all_read = outcome == Receiver::Outcome::kWhole;
    return outcome != Receiver::Outcome::kNothing;
  }

  bool copy_out_next() {
    if (done_ == blocks() || !have_all_reached(Flag::kReady, done_ + 1)) return false;
    const std::size_t slot_bytes = host_.slot_bytes();
    const std::size_t block_begin = static_cast<std::size_t>(done_ - 1) * slot_bytes;
    const std::size_t block_end = block_begin + slot_bytes;
    for (int local = 0; local < locals_; ++local) {
      const Slice& slice = slices_[static_cast<std::size_t>(local)];
      if (local == me_ || slice.is_behind_head) continue;
      const std::size_t begin = std::max(slice.begin, block_begin);
      const std::size_t end = std::min(slice.begin + slice.size, block_end);
      if (begin >= end) continue;
      setup_.kernels.copy(output_from(local_rank(local)) + (begin - slice.begin),
                          slot(local, done_) + (begin - block_begin), end - begin);
    }
    raise_done(done_ + 1);
    return true;
  }

  // Behind the last block with something for this rank nothing is read.
  void raise_done(std::uint64_t count) {
    const std::uint64_t last = 1 + blocks_for(longest_slice_end_, host_.slot_bytes());
    done_ = count >= last ? blocks() : count;
    raise(Flag::kDone, done_);
  }

  const int locals_;
  const std::size_t row_bytes_;
  const std::vector<std::size_t> input_starts_;  // by rank, as the next
  std::vector<std::size_t> output_starts_;
  const std::vector<Segment> stream_;
  SegmentWalk walk_;
  std::size_t stream_bytes_ = 0;
  std::vector<std::int64_t> received_;  // rows, by rank
  std::vector<Slice> slices_;           // by local index
  std::vector<Remote> remotes_;
  std::size_t longest_slice_end_ = 0;
  std::byte* room_ = nullptr;
  bool has_begun_ = false;
  bool is_empty_ = false;            // nothing comes to this rank
  std::uint64_t in_ = 0, done_ = 0;  // blocks
};

}  // namespace

std::unique_ptr<Collective> alltoall_streams(CollectiveSetup setup) {
  const std::size_t row =
      static_cast<std::size_t>(setup.request.row_counts[0]) * element_size(setup.request.type);
  std::size_t total = 0, longest = 0;
  for (const std::int64_t count : setup.request.counts_by_rank)
    total += static_cast<std::size_t>(count) * row;
  for (const int rank : setup.plane.topology().local_ranks) {
    const auto count = setup.request.counts_by_rank[static_cast<std::size_t>(rank)];
    longest = std::max(longest, static_cast<std::size_t>(count) * row);
  }
  const int ring = setup.rings.choose(total);
  const std::uint64_t blocks = 1 + blocks_for(longest, setup.plane.host().slot_bytes());
  return std::make_unique<AlltoallStreams>(std::move(setup), ring, blocks);
}

}  // namespace hv::runtime
