// The memory that the ranks of one host share: doorbells, control pipes, and the cells of process
// sets.
// SPDX-License-Identifier: Apache-2.0
//
// One mapping per host, laid out alike for every rank from (ranks, slot size, cells); all offsets
// are fixed. A rank writes only what is its own: its cells (slot_rings.h), the sending half of its
// pipes. Pages that nobody has written cost nothing, so a rank has many more cells than it uses. The
// memory comes from memfd_source.h between processes, and from
// inproc/inproc_source.h, plain memory, between threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/transport/fabric.h"
#include "runtime/transport/transport.h"
#include "src/base/status.h"

namespace hv::runtime {

constexpr std::size_t kCacheLine = 64;
constexpr int kMaxLocalRanks = 1024;
constexpr int kSlotsPerRing = 4;
constexpr std::size_t kDefaultSlotBytes = 128 << 10;
constexpr std::size_t kPipeBytes = 32 << 10;

constexpr int kFlags = 3;  // see slot_rings.h
// Process sets of which a rank can be a member at the same time, all ranks among them.
constexpr int kCells = 64;

struct HostGeometry {
  int ranks = 1;
  std::size_t slot_bytes = kDefaultSlotBytes;
  int cells = kCells;
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

  // This rank's own doorbell.
  std::uint32_t value() const override;
  void wait(std::uint32_t seen, TimePoint deadline) override;
  void ring() override { ring(index_); }
  void ring(int local);
  void ring_others();

  // Presence, as every rank of the host sees it.
  void set_left() { state_of(index_).left.store(1, std::memory_order_release); }
  bool has_left(int local) const {
    return state_of(local).left.load(std::memory_order_acquire) != 0;
  }
  // The first loss that any rank of this host learnt of; later ones are not recorded.
  void publish_loss(int global_rank, const std::string& reason);
  bool read_loss(int* global_rank, std::string* reason) const;

  // The sending half and the receiving half of a control pipe; see shm_transport.cc.
  struct PipeState;
  PipeState& pipe(int from, int to) const;
  std::byte* pipe_bytes(int from, int to) const;
  // Bit `from` of a rank's arrival set: that peer has written to it.
  void mark_arrival(int to, int from);
  int take_arrival();  // -1: none

 private:
  struct RankState {
    alignas(kCacheLine) std::atomic<std::uint32_t> bell;
    std::atomic<std::uint32_t> sleepers;
    alignas(kCacheLine) std::atomic<std::uint32_t> left;
    alignas(kCacheLine) std::atomic<std::uint64_t> arrivals[kMaxLocalRanks / 64];
  };
  struct Loss {
    alignas(kCacheLine) std::atomic<std::uint32_t> stage;  // 0 none, 1 being written, 2 to be read
    std::int32_t rank;
    char reason[480];
  };

  std::byte* cell_at(int local, int cell) const;
  RankState& state_of(int local) const { return states_[local]; }

  friend struct HostGeometry;
  MappedMemory memory_;
  HostGeometry geometry_;
  int index_;
  Loss* loss_;
  RankState* states_;
  PipeState* pipes_;
  std::byte* pipe_bytes_;
  std::byte* cells_;
};

// Single producer, single consumer; counters run for ever, the difference is what lies in the pipe.
struct HostMemory::PipeState {
  alignas(kCacheLine) std::atomic<std::uint64_t> written;
  alignas(kCacheLine) std::atomic<std::uint64_t> consumed;
};

}  // namespace hv::runtime
