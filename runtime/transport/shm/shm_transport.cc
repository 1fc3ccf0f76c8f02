// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/shm/shm_transport.h"

#include <algorithm>
#include <cstring>

#include "src/base/check.h"

namespace hv::runtime {

// Two one-way pipes. Each counter is written by one side only.
class ShmTransport::Pipe : public Channel {
 public:
  Pipe(HostMemory& memory, int peer)
      : memory_(memory),
        peer_(peer),
        out_(memory.pipe(memory.index(), peer)),
        out_bytes_(memory.pipe_bytes(memory.index(), peer)),
        in_(memory.pipe(peer, memory.index())),
        in_bytes_(memory.pipe_bytes(peer, memory.index())) {}

  std::size_t writable() const override {
    const auto used = out_.written.load(std::memory_order_relaxed) -
                      out_.consumed.load(std::memory_order_acquire);
    return kPipeBytes - std::min<std::size_t>(used, kPipeBytes);
  }

  void write(const void* bytes, std::size_t size) override {
    HV_CHECK(size <= writable(), "a pipe is written no further than its room");
    const std::uint64_t written = out_.written.load(std::memory_order_relaxed);
    const std::size_t at = written % kPipeBytes;
    const std::size_t first = std::min(size, kPipeBytes - at);
    std::memcpy(out_bytes_ + at, bytes, first);
    std::memcpy(out_bytes_, static_cast<const std::byte*>(bytes) + first, size - first);
    out_.written.store(written + size, std::memory_order_release);
    memory_.mark_arrival(peer_, memory_.index());
  }

  std::span<const std::byte> readable() const override {
    const std::uint64_t consumed = in_.consumed.load(std::memory_order_relaxed);
    const std::size_t waiting = in_.written.load(std::memory_order_acquire) - consumed;
    const std::size_t at = consumed % kPipeBytes;
    return {in_bytes_ + at, std::min(waiting, kPipeBytes - at)};
  }

  // The writer may be asleep with more to send.
  void consume(std::size_t size) override {
    const std::uint64_t consumed = in_.consumed.load(std::memory_order_relaxed);
    const bool was_full = in_.written.load(std::memory_order_acquire) - consumed > kPipeBytes / 2;
    in_.consumed.store(consumed + size, std::memory_order_release);
    if (was_full) memory_.ring(peer_);
  }

 private:
  HostMemory& memory_;
  int peer_;
  HostMemory::PipeState& out_;
  std::byte* out_bytes_;
  HostMemory::PipeState& in_;
  std::byte* in_bytes_;
};

ShmTransport::ShmTransport(HostMemory& memory, const std::vector<int>& local_ranks)
    : memory_(memory), local_ranks_(local_ranks), pipes_(local_ranks.size()) {
  for (int local = 0; local < memory.ranks(); ++local) {
    if (local == memory.index()) continue;
    peers_.push_back(local_ranks_[static_cast<std::size_t>(local)]);
    pipes_[static_cast<std::size_t>(local)] = std::make_unique<Pipe>(memory, local);
  }
}

ShmTransport::~ShmTransport() = default;

int ShmTransport::local_index_of(int rank) const {
  const auto found = std::lower_bound(local_ranks_.begin(), local_ranks_.end(), rank);
  HV_CHECK(found != local_ranks_.end() && *found == rank, "the rank is on this host");
  return static_cast<int>(found - local_ranks_.begin());
}

Channel& ShmTransport::channel(int peer, int lane) {
  HV_CHECK(lane == kControlLane, "shared memory has one lane");
  return *pipes_[static_cast<std::size_t>(local_index_of(peer))];
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

void ShmTransport::say_goodbye() {
  memory_.set_left();
  memory_.ring_others();
}

}  // namespace hv::runtime
