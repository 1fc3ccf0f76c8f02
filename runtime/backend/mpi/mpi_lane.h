// MpiLane: what the collectives of one process set share: its communicator, and memory to pack in.
// SPDX-License-Identifier: Apache-2.0
//
// One thread at a time, but for what makes and frees the communicator.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/backend/mpi/mpi_process.h"

namespace hv::mpi {

class MpiLane : public std::enable_shared_from_this<MpiLane> {
 public:
  // Begins to make the communicator; all members call, and have the sets that they share in one
  // order. world_ranks: of MPI_COMM_WORLD, by member. ring: called in another thread once ready()
  // is no longer kInProgress, unless silence() came before.
  static std::shared_ptr<MpiLane> begin(std::vector<int> world_ranks, int self,
                                        std::function<void()> ring);
  ~MpiLane();
  MpiLane(const MpiLane&) = delete;
  MpiLane& operator=(const MpiLane&) = delete;

  // kInProgress: it is not there yet.
  Status ready() const;
  // Whoever was to be rung for goes, although the communicator may be being made still.
  void silence();
  MPI_Comm communicator() const { return communicator_; }
  int members() const { return static_cast<int>(world_ranks_.size()); }
  int self() const { return self_; }
  // Collectives begin in the order in which they were started; the input of one may come late.
  std::uint64_t take_turn() { return turns_++; }
  bool is_turn(std::uint64_t turn) const { return turn == current_; }
  void end_turn() { ++current_; }
  // For messages that are not of a collective; alike on all members.
  int next_tag() { return tags_++ % kTags; }
  // For those of a transfer between two ranks, which has that number: none of the former. It comes
  // again, after very many.
  int tag_of(std::uint64_t number) const;

  // Kept for the next one that asks when the last copy goes.
  using Room = std::shared_ptr<std::byte[]>;
  Room take_room(std::size_t bytes);
  // Others have been lost: what MPI has been given may be read and written for ever.
  void give_up();

 private:
  struct Spare {
    std::unique_ptr<std::byte[]> memory;
    std::size_t bytes = 0;
  };
  static constexpr int kTags = 1 << 14;

  MpiLane(std::vector<int> world_ranks, int self, std::function<void()> ring);
  void make();
  void ring();

  const std::vector<int> world_ranks_;
  const int self_;
  int tags_ = 0;
  int last_tag_ = 2 * kTags - 1;  // every MPI has that many
  std::uint64_t turns_ = 0, current_ = 0;
  bool is_given_up_ = false;
  std::vector<Spare> spare_;  // the last one used last
  std::size_t spare_bytes_ = 0;
  Status made_;  // with the next, before is_made_ is
  MPI_Comm communicator_ = MPI_COMM_NULL;
  std::atomic<bool> is_made_{false};
  std::mutex ring_mutex_;
  std::function<void()> ring_;  // guarded by ring_mutex_; empty: nobody listens
};

}  // namespace hv::mpi
