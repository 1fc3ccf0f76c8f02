// PmixRendezvous: what the agent knows of its ranks' fences in PMIx, whose server is hvrun-pmix.
// Pure.
// SPDX-License-Identifier: Apache-2.0
//
// The library reports that a rank has begun or finalized PMIx, and that all ranks of this host have
// reached a fence, also where the job has no other host (hvrun-pmix ensures that). It does not
// report which ranks have reached a fence that others of this host have not. But an MPI begins with
// a fence of all ranks: until the first fence, ranks that have begun wait for those that have not.
// Where all ranks of this host have begun, one of them has not reached the fence yet, and it is not
// known which. The library no longer waits for a rank whose process ends later without
// MPI_Finalize, so such a rank is missed only if no rank of this host is left to reach a fence.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "src/wire/messages.h"

namespace hv::launcher {

class PmixRendezvous {
 public:
  // local: the ranks of this host. size: how many the job has.
  PmixRendezvous(std::set<std::uint32_t> local, std::size_t size)
      : local_(std::move(local)), size_(size) {}

  void begin(std::uint32_t rank) {
    begun_.insert(rank);
    joined_.insert(rank);
  }
  void finalize(std::uint32_t rank) { joined_.erase(rank); }
  // All ranks of this host have reached the fence.
  void come_to_fence(std::uint32_t number) { fence_ = number; }
  void pass(std::uint32_t number) {
    if (fence_ != number) return;
    fence_.reset();
    has_passed_ = true;
  }
  // The rank's process is gone.
  wire::MpiEnd note_end(std::uint32_t rank) {
    const bool has_left = joined_.erase(rank) == 0 || !joined_.empty();
    if (begun_.count(rank) > 0)
      return has_left ? wire::MpiEnd::kInOrder : wire::MpiEnd::kNotFinalized;
    has_missing_rank_ = true;
    return wire::MpiEnd::kNotBegun;
  }

  // Certainly; false where it is not known.
  bool is_waiting(std::uint32_t rank) const {
    return joined_.count(rank) > 0 && (fence_ || (is_first() && !have_all_begun()));
  }
  bool has_waiting_rank() const {
    return size_ > 1 && (fence_ || (is_first() && !joined_.empty()));
  }
  // A rank waits, and not all have begun.
  bool is_beginning() const { return has_waiting_rank() && !has_passed_; }
  // Ranks that have begun, while not all of the job have reached the first fence.
  std::vector<std::uint32_t> beginning() const {
    if (size_ <= 1 || has_passed_) return {};
    return {joined_.begin(), joined_.end()};
  }
  // A rank of this host has ended, and ranks that have begun wait for it.
  bool has_missing_rank() const { return has_missing_rank_ && is_first(); }

 private:
  // No rank has reached a fence yet.
  bool is_first() const { return !fence_ && !has_passed_; }
  bool have_all_begun() const {
    return std::includes(begun_.begin(), begun_.end(), local_.begin(), local_.end());
  }

  std::set<std::uint32_t> local_;
  std::size_t size_;
  std::set<std::uint32_t> begun_, joined_;  // joined: begun, not finalized, not ended
  std::optional<std::uint32_t> fence_;      // reached here, not by other hosts
  bool has_passed_ = false;                 // the first fence
  bool has_missing_rank_ = false;
};

}  // namespace hv::launcher
