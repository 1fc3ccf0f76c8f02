// What the agent knows of its ranks' meeting by PMIx, whose server is hvrun-pmix. Pure.
// SPDX-License-Identifier: Apache-2.0
//
// The library tells that a rank has begun or ended PMIx, and that all of this host's ranks have
// come to a fence, also where the job has no other host (hvrun-pmix sees to that); who has come to
// one that others of this host have not, it keeps to itself. But an MPI begins with a fence of all:
// until the first one who has begun waits for who has not. Where all of this host have begun, one
// of them has yet to come there, and any of them may be it. A rank whose process ends later,
// without MPI_Finalize, it counts out, so that it is missed only if nobody is left here to come to
// a fence.
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
  // local: this host's ranks, of so many that the job has.
  PmixRendezvous(std::set<std::uint32_t> local, std::size_t size)
      : local_(std::move(local)), size_(size) {}

  void begin(std::uint32_t rank) {
    begun_.insert(rank);
    joined_.insert(rank);
  }
  void finalize(std::uint32_t rank) { joined_.erase(rank); }
  // All ranks of this host have come; then those of all hosts.
  void come_to_fence(std::uint32_t number) { fence_ = number; }
  void pass(std::uint32_t number) {
    if (fence_ != number) return;
    fence_.reset();
    has_passed_ = true;
  }
  // The rank's process is gone.
  wire::MpiEnd end(std::uint32_t rank) {
    const bool has_left = joined_.erase(rank) == 0 || !joined_.empty();
    if (begun_.count(rank) > 0)
      return has_left ? wire::MpiEnd::kInOrder : wire::MpiEnd::kNotFinalized;
    has_missing_rank_ = true;
    return wire::MpiEnd::kNotBegun;
  }

  // For certain.
  bool is_waiting(std::uint32_t rank) const {
    return joined_.count(rank) > 0 && (fence_ || (is_first() && !have_all_begun()));
  }
  bool has_waiting_rank() const {
    return size_ > 1 && (fence_ || (is_first() && !joined_.empty()));
  }
  // Somebody waits, and not all have begun.
  bool is_beginning() const { return has_waiting_rank() && !has_passed_; }
  // Who has begun, while not all of the job have come to the first fence.
  std::vector<std::uint32_t> beginning() const {
    if (size_ <= 1 || has_passed_) return {};
    return {joined_.begin(), joined_.end()};
  }
  // A rank of this host has ended, and is waited for by those that have begun.
  bool has_missing_rank() const { return has_missing_rank_ && is_first(); }

 private:
  // Nobody has come to a fence yet.
  bool is_first() const { return !fence_ && !has_passed_; }
  bool have_all_begun() const {
    return std::includes(begun_.begin(), begun_.end(), local_.begin(), local_.end());
  }

  std::set<std::uint32_t> local_;
  std::size_t size_;
  std::set<std::uint32_t> begun_, joined_;  // joined: and not finalized, nor ended
  std::optional<std::uint32_t> fence_;      // that waits for other hosts
  bool has_passed_ = false;                 // the first one has
  bool has_missing_rank_ = false;
};

}  // namespace hv::launcher
