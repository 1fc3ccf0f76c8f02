// Readiness: which parts of a rank's subtree have which tensor ready.
// SPDX-License-Identifier: Apache-2.0
//
// A source is this rank itself or one of its children, which speaks for its whole subtree. A tensor
// is complete when every source has said so; then it leaves the table. Pure; one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/engine/negotiation/control_messages.h"
#include "runtime/engine/negotiation/control_tree.h"
#include "runtime/engine/negotiation/response_cache.h"
#include "runtime/engine/negotiation/stall_inspector.h"
#include "runtime/engine/negotiation/straggler.h"

namespace hv::runtime {

// The ranks of one node's subtree that have run out of data: until all ranks have, they take part
// in reductions with zeros.
class JoinedRanks {
 public:
  bool has(std::uint32_t rank) const { return rank < has_.size() && has_[rank]; }
  void add(std::uint32_t rank) {
    if (has(rank)) return;
    if (rank >= has_.size()) has_.resize(rank + 1);
    has_[rank] = true;
    last_ = rank;
    ++size_;
  }
  bool covers(const std::vector<int>& ranks) const {
    return size_ >= ranks.size() && std::all_of(ranks.begin(), ranks.end(), [this](int rank) {
             return has(static_cast<std::uint32_t>(rank));
           });
  }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // Of which the node learnt last.
  std::uint32_t last() const { return last_; }
  void clear() { *this = {}; }

 private:
  std::vector<bool> has_;  // by rank
  std::size_t size_ = 0;
  std::uint32_t last_ = 0;
};

// A tensor that is ready in the whole subtree: as a number if everybody meant the cached one, else
// by variants.
struct CompleteTensor {
  std::string name;
  std::uint64_t number = 0;
  std::vector<Variant> variants;
};

class ReadinessTable {
 public:
  // Both outlive the table.
  ReadinessTable(const ControlTree& tree, const ResponseCache& cache)
      : tree_(tree),
        cache_(cache),
        arrivals_(tree.self),
        acknowledged_(tree.children.size()),
        joined_(tree.children.size() + 1) {}

  // from: a rank, this one or a child. False: no number that this source can mean.
  bool add_number(int from, std::uint64_t number, TimePoint time);
  void add_fresh(int from, const FreshReport& report, TimePoint time);
  void add_partial(int from, const PartialReport& report, TimePoint time);
  // All ranks that this source speaks for have joined: it counts as ready for everything, until
  // all_joined(). What is complete thanks to that has variants without them.
  void join(int from);
  void all_joined();
  // These entries leave the cache with the decision that is the decisions-th. What is known by
  // their number is spelled out; the number itself is understood, and spelled out at once, until
  // all children have applied that decision too, and so can give it no more.
  void forget(const std::vector<ResponseCache::Entry>& evicted, std::uint64_t decisions);
  // A child has applied so many decisions.
  void acknowledge(int child, std::uint64_t decisions);
  // So many all children have applied; the most there can be where there are none.
  std::uint64_t acknowledged() const;

  // In the order in which they became complete: the next ones, at least one if there is any, up to
  // so many bytes of a message.
  std::vector<CompleteTensor> take_complete(std::size_t most_bytes);
  bool has_complete() const { return !complete_.empty(); }
  // Evicted entries that are still understood.
  std::size_t retired() const { return retired_.size(); }
  std::vector<Waiting> waiting() const;
  // Who completes tensors last.
  Arrivals& arrivals() { return arrivals_; }
  const Arrivals& arrivals() const { return arrivals_; }
  bool empty() const { return pending_.empty(); }
  // Some of the subtree have it ready.
  bool is_pending(const std::string& name) const { return pending_.count(name) > 0; }

 private:
  struct Pending {
    TimePoint since;
    std::vector<bool> done;  // by source: 0 is this rank, then the children
    std::size_t done_count = 0;
    bool has_absent = false;  // a source that has joined
    std::uint64_t number = 0;
    std::vector<int> number_sources;  // who gave the number instead of the description
    std::vector<Variant> variants;
    struct Told {
      std::vector<std::uint32_t> missing, silent;
    };
    std::map<int, Told> told;  // by source: what a partial report said
  };

  struct Retirement {
    std::uint64_t decisions = 0;
    std::uint64_t number = 0;
  };

  int source_of(int rank) const;
  std::vector<int> ranks_of(int source) const;
  Pending& pending(const std::string& name, TimePoint time);
  void mark_done(const std::string& name, Pending& tensor, int source);
  // The same of a source that others may have waited for.
  void arrive(const std::string& name, Pending& tensor, int source, int rank, TimePoint time);
  void complete(const std::string& name, Pending& tensor);
  // Nobody speaks of this tensor by number any more.
  void spell_out(Pending& tensor, const ResponseCache::Entry& entry) const;
  std::vector<int> all_ranks() const;

  const ControlTree& tree_;
  const ResponseCache& cache_;
  Arrivals arrivals_;
  std::unordered_map<std::uint64_t, ResponseCache::Entry> retired_;  // by number
  std::deque<Retirement> retirements_;                               // the oldest first
  std::vector<std::uint64_t> acknowledged_;                          // decisions, by child
  std::vector<bool> joined_;                                         // by source
  std::unordered_map<std::string, Pending> pending_;
  std::vector<CompleteTensor> complete_;
};

}  // namespace hv::runtime
