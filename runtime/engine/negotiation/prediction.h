// Prediction: buckets that were announced, and how much of each is ready where.
// SPDX-License-Identifier: Apache-2.0
//
// A rank holds back the tensors of a bucket until it has all of them, and its subtree until every
// rank of it has; then one number goes up the tree. Nothing starts before every rank has spoken. A
// rank that does otherwise (it waits for one of them before it has the others, leaves one out,
// gives it another shape) says so, and the root has the buckets given up: what was held or
// known by bucket then counts tensor by tensor.
//
// Announced and given up by decisions, in the order of decisions: so buckets and their numbers are
// equal on all ranks. A bucket that is given up is understood until every child has applied the
// decision that did it. Pure; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "runtime/engine/negotiation/bucket_planner.h"
#include "runtime/engine/negotiation/control_tree.h"
#include "runtime/engine/negotiation/straggler.h"
#include "src/base/clock.h"

namespace hv::runtime {

class Prediction {
 public:
  // Both outlive it. arrivals learns who completes buckets last.
  Prediction(const ControlTree& tree, Arrivals& arrivals) : tree_(tree), arrivals_(arrivals) {}

  // These are not covered yet, each at least two different numbers.
  void announce(const std::vector<BucketNumbers>& buckets);
  bool is_live() const { return !buckets_.empty(); }
  std::size_t live() const { return buckets_.size(); }
  // Of the buckets that are live: one more than plans were given up.
  std::uint64_t plan() const { return plan_; }
  // The tensor is of a live bucket.
  bool covers(std::uint64_t number) const { return bucket_of_.count(number) > 0; }
  // nullptr: no live bucket.
  const BucketNumbers* find(std::uint64_t bucket) const;

  // This rank has the tensor ready; it is of a live bucket.
  void hold(std::uint64_t number, TimePoint time);
  // A child's subtree has all of it ready. False: no live bucket.
  bool add(int child, std::uint64_t bucket, TimePoint time);
  // Of a bucket that was given up; nullptr: nor is it that.
  const BucketNumbers* find_given_up(std::uint64_t bucket) const;
  // Buckets that the whole subtree has ready, in the order in which they became so; they begin
  // anew.
  std::vector<std::uint64_t> take_whole();

  // This rank has tensors ready whose bucket it has not all of; this is one of them.
  bool is_holding() const { return holding_ > 0; }
  bool is_held(std::uint64_t number) const;
  // Somebody waits for somebody.
  bool is_open() const { return touched_ > 0; }
  // Since when the oldest bucket has waited for others of this rank's tensors, or for other ranks;
  // max() if none does.
  TimePoint held_since() const;
  TimePoint open_since() const;

  struct Ready {
    int rank;  // this one or a child
    std::uint64_t number;
    TimePoint since;
  };
  // What is ready of one source (this rank, a child), which is known by bucket no more.
  std::vector<Ready> spell_out(int source_rank);
  // decisions: how many this rank has applied, with the one that says so.
  std::vector<Ready> give_up(std::uint64_t decisions);
  // All children have applied so many.
  void acknowledge(std::uint64_t decisions);

 private:
  struct Bucket {
    BucketNumbers numbers;
    BucketNumbers held{};      // this rank's, while not all
    std::vector<bool> done{};  // by source: this rank, then the children
    std::size_t done_count = 0;
    TimePoint held_since{};
    TimePoint since{};
    TimePoint whole_since{};  // the first source has all of it
  };

  void touch(Bucket& bucket, TimePoint time);
  void mark_done(std::uint64_t id, Bucket& bucket, std::size_t source, TimePoint time);
  int rank_of(std::size_t source) const;
  std::size_t source_of(int rank) const;
  void append_ready(const Bucket& bucket, std::size_t source, std::vector<Ready>* ready) const;

  const ControlTree& tree_;
  Arrivals& arrivals_;
  std::uint64_t plan_ = 1;
  std::uint64_t next_bucket_ = 1;
  std::map<std::uint64_t, Bucket> buckets_;
  std::unordered_map<std::uint64_t, std::uint64_t> bucket_of_;  // by number
  std::vector<std::uint64_t> whole_;
  std::size_t holding_ = 0;  // buckets that wait for this rank's other tensors
  std::size_t touched_ = 0;  // buckets of which something is ready somewhere
  struct GivenUp {
    std::uint64_t decisions;
    BucketNumbers numbers;
  };
  std::map<std::uint64_t, GivenUp> given_up_;
};

}  // namespace hv::runtime
