// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/shm/host_memory.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstring>

#include "runtime/transport/shm/shared_heap.h"
#include "src/base/check.h"

namespace hv::runtime {
namespace {

struct Offsets {
  std::size_t states, pipes[2], pipe_bytes[2], cells, heaps, end;  // pipes by kind
};

constexpr std::size_t kFlagBytes = sizeof(FlagLine) * kRings * kFlags;

std::size_t cell_bytes(const HostGeometry& geometry) {
  return up_to_page(kFlagBytes) + up_to_page(kRings * kSlotsPerRing * geometry.slot_bytes);
}

}  // namespace

std::atomic<void (*)()> flag_access_hook{nullptr};

namespace {

// Where each part begins; the loss record comes first. Sizes are whole pages so that no two parts
// share one.
Offsets offsets_of(const HostGeometry& geometry, std::size_t loss, std::size_t state,
                   std::size_t pipe) {
  const auto ranks = static_cast<std::size_t>(geometry.ranks);
  Offsets at{};
  at.states = up_to_page(loss);
  std::size_t next = at.states + up_to_page(ranks * state);
  for (const PipeKind kind : {PipeKind::kControl, PipeKind::kPair}) {
    const auto index = static_cast<std::size_t>(kind);
    at.pipes[index] = next;
    at.pipe_bytes[index] = next + up_to_page(ranks * ranks * pipe);
    next = at.pipe_bytes[index] + ranks * ranks * pipe_capacity(kind);
  }
  at.cells = next;
  at.heaps = at.cells + ranks * static_cast<std::size_t>(geometry.cells) * cell_bytes(geometry);
  at.end = at.heaps + ranks * geometry.heap_bytes;
  return at;
}

}  // namespace

std::size_t HostGeometry::total_bytes() const {
  return offsets_of(*this, sizeof(HostMemory::Loss), sizeof(HostMemory::RankState),
                    sizeof(HostMemory::PipeState))
      .end;
}

HostMemory::HostMemory(MappedMemory memory, HostGeometry geometry, int local_index)
    : memory_(std::move(memory)), geometry_(geometry), index_(local_index) {
  HV_CHECK(memory_.size == geometry_.total_bytes(), "shared memory has the agreed size");
  const Offsets at = offsets_of(geometry_, sizeof(Loss), sizeof(RankState), sizeof(PipeState));
  // Fresh shared memory is zero, and zero is the initial value of everything in it.
  loss_ = reinterpret_cast<Loss*>(memory_.bytes);
  states_ = reinterpret_cast<RankState*>(memory_.bytes + at.states);
  for (int kind = 0; kind < 2; ++kind) {
    pipes_[kind] = reinterpret_cast<PipeState*>(memory_.bytes + at.pipes[kind]);
    pipe_bytes_[kind] = memory_.bytes + at.pipe_bytes[kind];
  }
  cells_ = memory_.bytes + at.cells;
  heaps_ = memory_.bytes + at.heaps;
  own_heap_ = std::make_shared<SharedHeap>(heap(index_), geometry_.heap_bytes, memory_.owner);
}

HostMemory::~HostMemory() = default;

std::byte* HostMemory::cell_at(int local, int cell) const {
  HV_CHECK(cell >= 0 && cell < geometry_.cells, "a rank has that many cells");
  const auto number = static_cast<std::size_t>(local) * static_cast<std::size_t>(geometry_.cells) +
                      static_cast<std::size_t>(cell);
  return cells_ + number * cell_bytes(geometry_);
}

std::byte* HostMemory::slots(int local, int cell) const {
  return cell_at(local, cell) + up_to_page(kFlagBytes);
}

// Sleeping: the sleeper announces itself, then looks at the word once more; the ringer changes the
// word, then looks for sleepers. Both orders are sequentially consistent, so one of the two sees
// the other.
std::uint32_t HostMemory::value() const {
  at_flag_access();
  return state_of(index_).bell.load(std::memory_order_seq_cst);
}

void HostMemory::wait(std::uint32_t seen, TimePoint deadline) {
  RankState& state = state_of(index_);
  at_flag_access();
  state.sleepers.fetch_add(1, std::memory_order_seq_cst);
  at_flag_access();
  if (state.bell.load(std::memory_order_seq_cst) == seen) {
    const timespec limit = time_left(deadline);
    at_flag_access();
    ::syscall(SYS_futex, &state.bell, FUTEX_WAIT, seen, &limit, nullptr, 0);
  }
  at_flag_access();
  state.sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

void HostMemory::ring(int local) {
  RankState& state = state_of(local);
  at_flag_access();
  state.bell.fetch_add(1, std::memory_order_seq_cst);
  at_flag_access();
  if (state.sleepers.load(std::memory_order_seq_cst) != 0)
    ::syscall(SYS_futex, &state.bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void HostMemory::ring_others() {
  for (int local = 0; local < geometry_.ranks; ++local)
    if (local != index_) ring(local);
}

void HostMemory::publish_loss(int global_rank, const std::string& reason) {
  std::uint32_t none = 0;
  at_flag_access();
  if (!loss_->stage.compare_exchange_strong(none, 1)) return;
  loss_->rank = global_rank;
  const std::size_t size = reason.copy(loss_->reason, sizeof loss_->reason - 1);
  loss_->reason[size] = '\0';
  at_flag_access();
  loss_->stage.store(2, std::memory_order_release);
  ring_others();
}

bool HostMemory::read_loss(int* global_rank, std::string* reason) const {
  at_flag_access();
  if (loss_->stage.load(std::memory_order_acquire) != 2) return false;
  *global_rank = loss_->rank;
  reason->assign(loss_->reason, ::strnlen(loss_->reason, sizeof loss_->reason));
  return true;
}

bool HostMemory::has_loss() const {
  // A load alone might come before the caller's reads of tensors, which it is to judge.
  at_flag_access();
  return loss_->stage.fetch_add(0, std::memory_order_acq_rel) != 0;
}

std::size_t HostMemory::pair_number(int from, int to) const {
  return static_cast<std::size_t>(from) * static_cast<std::size_t>(geometry_.ranks) +
         static_cast<std::size_t>(to);
}

HostMemory::PipeState& HostMemory::pipe(PipeKind kind, int from, int to) const {
  return pipes_[static_cast<int>(kind)][pair_number(from, to)];
}

std::byte* HostMemory::pipe_bytes(PipeKind kind, int from, int to) const {
  return pipe_bytes_[static_cast<int>(kind)] + pair_number(from, to) * pipe_capacity(kind);
}

void HostMemory::mark_arrival(int to, int from) {
  at_flag_access();
  state_of(to).arrivals[from / 64].fetch_or(1ULL << (from % 64), std::memory_order_acq_rel);
  ring(to);
}

int HostMemory::take_arrival() {
  RankState& state = state_of(index_);
  for (int word = 0; word * 64 < geometry_.ranks; ++word) {
    at_flag_access();
    const std::uint64_t bits = state.arrivals[word].load(std::memory_order_relaxed);
    if (bits == 0) continue;
    const int bit = __builtin_ctzll(bits);
    at_flag_access();
    state.arrivals[word].fetch_and(~(1ULL << bit), std::memory_order_acq_rel);
    return word * 64 + bit;
  }
  return -1;
}

}  // namespace hv::runtime
