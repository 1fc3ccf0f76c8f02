// The memory that the ranks of one host share: doorbells, flags, slot rings and control pipes.
// SPDX-License-Identifier: Apache-2.0
//
// One mapping per host, laid out alike for every rank from (ranks, slot size); all offsets are
// fixed. A rank writes only what is its own: its flags, its slots, the sending half of its pipes.
// Flags count blocks upwards for ever and are never reset, so a reader can be late but never
// confused. The memory comes from memfd_source.h between processes, and from
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

// What a rank has done with the blocks of a ring's current and earlier collectives.
enum class Flag {
  kReady,    // copied in: its slot can be read
  kReduced,  // its share of the result can be read
  kDone,     // it will read nothing more of this block in others' slots
};
constexpr int kFlags = 3;

struct HostGeometry {
  int ranks = 1;
  std::size_t slot_bytes = kDefaultSlotBytes;
  std::size_t total_bytes() const;
};

// Called before each access to a flag, if set: tests yield there to stir up the order of threads.
extern std::atomic<void (*)()> flag_access_hook;

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

  // Slot of block number `block` in a rank's ring. Local indexes everywhere here.
  std::byte* slot(int local, int ring, std::uint64_t block) const {
    return slots_ + ((static_cast<std::size_t>(local) * kRings + static_cast<std::size_t>(ring)) *
                         kSlotsPerRing +
                     block % kSlotsPerRing) *
                        geometry_.slot_bytes;
  }
  std::uint64_t flag(int local, int ring, Flag flag) const {
    return read_flag(*flag_at(local, ring, flag));
  }
  // Sets this rank's own flag. The others look at it when they next advance; ring them with
  // ring_others().
  void raise(int ring, Flag flag, std::uint64_t blocks) {
    write_flag(*flag_at(index_, ring, flag), blocks);
  }
  // True when every rank's flag has reached `blocks`.
  bool all_reached(int ring, Flag flag, std::uint64_t blocks) const;

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
  struct alignas(kCacheLine) FlagLine {
    std::atomic<std::uint64_t> blocks;
  };

  static std::uint64_t read_flag(const FlagLine& line);
  static void write_flag(FlagLine& line, std::uint64_t blocks);
  FlagLine* flag_at(int local, int ring, Flag flag) const {
    return flags_ +
           (static_cast<std::size_t>(local) * kRings + static_cast<std::size_t>(ring)) * kFlags +
           static_cast<std::size_t>(flag);
  }
  RankState& state_of(int local) const { return states_[local]; }

  friend struct HostGeometry;
  MappedMemory memory_;
  HostGeometry geometry_;
  int index_;
  Loss* loss_;
  RankState* states_;
  FlagLine* flags_;
  PipeState* pipes_;
  std::byte* pipe_bytes_;
  std::byte* slots_;
};

// Single producer, single consumer; counters run for ever, the difference is what lies in the pipe.
struct HostMemory::PipeState {
  alignas(kCacheLine) std::atomic<std::uint64_t> written;
  alignas(kCacheLine) std::atomic<std::uint64_t> consumed;
};

}  // namespace hv::runtime
