// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/shm/shm_transport.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "src/base/check.h"

namespace hv::runtime {

// Two one-way pipes. Each counter is written by one side only.
class ShmTransport::Pipe : public Channel {
 public:
  Pipe(HostMemory& memory, PipeKind kind, int peer)
      : memory_(memory),
        peer_(peer),
        is_control_(kind == PipeKind::kControl),
        capacity_(pipe_capacity(kind)),
        out_(memory.pipe(kind, memory.index(), peer)),
        out_bytes_(memory.pipe_bytes(kind, memory.index(), peer)),
        in_(memory.pipe(kind, peer, memory.index())),
        in_bytes_(memory.pipe_bytes(kind, peer, memory.index())) {}

  std::size_t writable() const override {
    at_flag_access();
    const std::uint64_t written = out_.written.load(std::memory_order_relaxed);
    at_flag_access();
    const std::size_t used = written - out_.consumed.load(std::memory_order_acquire);
    return capacity_ - std::min(used, capacity_);
  }

  void write(const void* bytes, std::size_t size) override {
    HV_CHECK(size <= writable(), "a pipe is written no further than its room");
    at_flag_access();
    const std::uint64_t written = out_.written.load(std::memory_order_relaxed);
    const std::size_t at = written % capacity_;
    const std::size_t first = std::min(size, capacity_ - at);
    std::memcpy(out_bytes_ + at, bytes, first);
    std::memcpy(out_bytes_, static_cast<const std::byte*>(bytes) + first, size - first);
    at_flag_access();
    out_.written.store(written + size, std::memory_order_release);
    if (is_control_) {
      memory_.mark_arrival(peer_, memory_.index());
    } else {
      memory_.ring(peer_);
    }
  }

  std::span<const std::byte> readable() const override {
    at_flag_access();
    const std::uint64_t consumed = in_.consumed.load(std::memory_order_relaxed);
    at_flag_access();
    const std::size_t waiting = in_.written.load(std::memory_order_acquire) - consumed;
    const std::size_t at = consumed % capacity_;
    return {in_bytes_ + at, std::min(waiting, capacity_ - at)};
  }

  // The writer may be asleep with more to send.
  void consume(std::size_t size) override {
    at_flag_access();
    const std::uint64_t consumed = in_.consumed.load(std::memory_order_relaxed);
    at_flag_access();
    const bool was_full = in_.written.load(std::memory_order_acquire) - consumed > capacity_ / 2;
    at_flag_access();
    in_.consumed.store(consumed + size, std::memory_order_release);
    if (was_full) memory_.ring(peer_);
  }

  void shrink() override {}  // its bytes are the host's memory

 private:
  HostMemory& memory_;
  const int peer_;
  const bool is_control_;
  const std::size_t capacity_;
  HostMemory::PipeState& out_;
  std::byte* out_bytes_;
  HostMemory::PipeState& in_;
  std::byte* in_bytes_;
};

ShmTransport::ShmTransport(HostMemory& memory, const std::vector<int>& local_ranks)
    : memory_(memory),
      local_ranks_(local_ranks),
      beats_seen_(local_ranks.size()),
      pipes_(local_ranks.size()),
      pair_pipes_(local_ranks.size()) {
  for (int local = 0; local < memory.ranks(); ++local) {
    if (local == memory.index()) continue;
    peers_.push_back(local_ranks_[static_cast<std::size_t>(local)]);
    const auto index = static_cast<std::size_t>(local);
    pipes_[index] = std::make_unique<Pipe>(memory, PipeKind::kControl, local);
    pair_pipes_[index] = std::make_unique<Pipe>(memory, PipeKind::kPair, local);
  }
}

ShmTransport::~ShmTransport() = default;

int ShmTransport::local_index_of(int rank) const {
  const auto found = std::lower_bound(local_ranks_.begin(), local_ranks_.end(), rank);
  HV_CHECK(found != local_ranks_.end() && *found == rank, "the rank is on this host");
  return static_cast<int>(found - local_ranks_.begin());
}

Channel& ShmTransport::channel(int peer, int lane) {
  HV_CHECK(lane == kControlLane || lane == kPairLane, "shared memory has two lanes");
  const auto index = static_cast<std::size_t>(local_index_of(peer));
  return lane == kControlLane ? *pipes_[index] : *pair_pipes_[index];
}

bool ShmTransport::next_arrival(int* peer) {
  const int local = memory_.take_arrival();
  if (local < 0) return false;
  *peer = local_ranks_[static_cast<std::size_t>(local)];
  return true;
}

PeerState ShmTransport::state(int peer) const {
  return memory_.has_left(local_index_of(peer)) ? PeerState::kLeft : PeerState::kPresent;
}

bool ShmTransport::take_heard(int peer) {
  const int local = local_index_of(peer);
  std::uint32_t& seen = beats_seen_[static_cast<std::size_t>(local)];
  const std::uint32_t beats = memory_.beats_of(local);
  return std::exchange(seen, beats) != beats;
}

void ShmTransport::say_goodbye() {
  memory_.set_left();
  memory_.ring_others();
}

}  // namespace hv::runtime
