// The memory that the ranks of one host share: doorbells, control pipes, the cells of process sets,
// and a heap for each rank's tensors (shared_heap.h).
// SPDX-License-Identifier: Apache-2.0
//
// One mapping per host, laid out alike for every rank from (ranks, slot size, cells); all offsets
// are fixed. A rank writes only what is its own: its cells (slot_rings.h), the sending half of its
// pipes. Pages that nobody has written cost nothing, so a rank has many more cells than it uses.
// The memory comes from host_meeting.h between processes, and from
// inproc/inproc_source.h, plain memory, between threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "runtime/transport/fabric.h"
#include "runtime/transport/shm/shared_heap.h"
#include "runtime/transport/transport.h"
#include "src/base/status.h"

namespace hv::runtime {

constexpr std::size_t kCacheLine = 64;
constexpr int kMaxLocalRanks = 1024;
constexpr int kSlotsPerRing = 4;
constexpr std::size_t kDefaultSlotBytes = 128 << 10;

// Between every two ranks, each way.
enum class PipeKind {
  kControl,  // messages
  kPair,     // what they send each other outside of collectives
};
constexpr std::size_t pipe_capacity(PipeKind kind) {
  return kind == PipeKind::kControl ? 32 << 10 : 128 << 10;
}

constexpr int kFlags = 3;  // see slot_rings.h
// Process sets of which a rank can be a member at the same time, all ranks among them.
constexpr int kCells = 64;
// Of each rank; only what is used of it costs memory. No multiple of 2^28, so that a share's places
// in the ranks' heaps do not lie alike: caches whose ways are predicted from addresses (AMD's Zen)
// would drop the line of one when that of the next is touched.
constexpr std::size_t kHeapBytes = (64ULL << 30) + 4096;

struct HostGeometry {
  int ranks = 1;
  std::size_t slot_bytes = kDefaultSlotBytes;
  int cells = kCells;
  std::size_t heap_bytes = 0;  // whole pages
  std::size_t total_bytes() const;
};

// Called before each access to a flag, if set: tests yield there to stir up the order of threads.
extern std::atomic<void (*)()> flag_access_hook;
inline void at_flag_access() {
  if (auto* hook = flag_access_hook.load(std::memory_order_relaxed)) [[unlikely]]
    hook();
}

struct alignas(kCacheLine) FlagLine {
  std::atomic<std::uint64_t> blocks;
};

// A piece of memory with its way of being given back.
struct MappedMemory {
  std::byte* bytes = nullptr;
  std::size_t size = 0;
  std::shared_ptr<void> owner;
};

class HostMemory : public Doorbell {
 public:
  HostMemory(MappedMemory memory, HostGeometry geometry, int local_index);
  ~HostMemory() override;

  int ranks() const { return geometry_.ranks; }
  int index() const { return index_; }
  std::size_t slot_bytes() const { return geometry_.slot_bytes; }

  // A rank's cell: kRings * kFlags lines, and as many slots as its rings have together. Local
  // indexes everywhere here.
  FlagLine* flags(int local, int cell) const {
    return reinterpret_cast<FlagLine*>(cell_at(local, cell));
  }
  std::byte* slots(int local, int cell) const;
  // A rank's heap, heap_bytes() of it: tensors in memory that it has given out.
  std::byte* heap(int local) const {
    return heaps_ + static_cast<std::size_t>(local) * geometry_.heap_bytes;
  }
  std::size_t heap_bytes() const { return geometry_.heap_bytes; }
  // This rank's own, which gives it out. It may outlive this.
  const std::shared_ptr<SharedHeap>& own_heap() const { return own_heap_; }

  // This rank has put so many bytes of an operation here for others.
  void count_copied(std::size_t bytes) {
    moved_->shared_memory.fetch_add(bytes, std::memory_order_relaxed);
  }
  void count_into(std::shared_ptr<MovedBytes> moved) { moved_ = std::move(moved); }

  // This rank's own doorbell.
  std::uint32_t value() const override;
  void wait(std::uint32_t seen, TimePoint deadline) override;
  void ring() override { ring(index_); }
  void ring(int local);
  void ring_others();

  // Presence, as every rank of the host sees it.
  void set_left() {
    at_flag_access();
    state_of(index_).left.store(1, std::memory_order_release);
  }
  bool has_left(int local) const {
    at_flag_access();
    return state_of(local).left.load(std::memory_order_acquire) != 0;
  }
  // A sign of life, counted.
  void beat() {
    at_flag_access();
    state_of(index_).beats.fetch_add(1, std::memory_order_relaxed);
  }
  std::uint32_t beats_of(int local) const {
    at_flag_access();
    return state_of(local).beats.load(std::memory_order_relaxed);
  }
  // The first loss that any rank of this host learnt of; later ones are not recorded.
  void publish_loss(int global_rank, const std::string& reason);
  bool read_loss(int* global_rank, std::string* reason) const;
  // Whether there is one, as soon as it is recorded: before anybody hears of it from that rank.
  bool has_loss() const;

  // The sending half and the receiving half of a pipe; see shm_transport.cc.
  struct PipeState;
  PipeState& pipe(PipeKind kind, int from, int to) const;
  std::byte* pipe_bytes(PipeKind kind, int from, int to) const;
  // Bit `from` of a rank's arrival set: that peer has written to it.
  void mark_arrival(int to, int from);
  int take_arrival();  // -1: none

 private:
  struct RankState {
    alignas(kCacheLine) std::atomic<std::uint32_t> bell;
    std::atomic<std::uint32_t> sleepers;
    alignas(kCacheLine) std::atomic<std::uint32_t> left;
    std::atomic<std::uint32_t> beats;
    alignas(kCacheLine) std::atomic<std::uint64_t> arrivals[kMaxLocalRanks / 64];
  };
  struct Loss {
    alignas(kCacheLine) std::atomic<std::uint32_t> stage;  // 0 none, 1 being written, 2 to be read
    std::int32_t rank;
    char reason[480];
  };

  std::size_t pair_number(int from, int to) const;
  std::byte* cell_at(int local, int cell) const;
  RankState& state_of(int local) const { return states_[local]; }

  friend struct HostGeometry;
  MappedMemory memory_;
  HostGeometry geometry_;
  int index_;
  std::shared_ptr<MovedBytes> moved_ = std::make_shared<MovedBytes>();
  Loss* loss_;
  RankState* states_;
  PipeState* pipes_[2];  // by kind
  std::byte* pipe_bytes_[2];
  std::byte* cells_;
  std::byte* heaps_;
  std::shared_ptr<SharedHeap> own_heap_;
};

// Single producer, single consumer; counters run for ever, the difference is what lies in the pipe.
struct HostMemory::PipeState {
  alignas(kCacheLine) std::atomic<std::uint64_t> written;
  alignas(kCacheLine) std::atomic<std::uint64_t> consumed;
};

}  // namespace hv::runtime
