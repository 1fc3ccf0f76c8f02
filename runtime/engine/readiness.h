// Readiness: which parts of a rank's subtree have which tensor ready.
// SPDX-License-Identifier: Apache-2.0
//
// A source is this rank itself or one of its children, which speaks for its whole subtree. A tensor
// is complete when every source has said so; then it leaves the table. Pure; one thread.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/engine/control_messages.h"
#include "runtime/engine/control_tree.h"
#include "runtime/engine/response_cache.h"
#include "runtime/engine/stall_inspector.h"

namespace hv::runtime {

// A tensor that is ready in the whole subtree: as a number if everybody meant the cached one, else
// by variants.
struct CompleteTensor {
  std::string name;
  std::uint64_t number = 0;
  std::vector<Variant> variants;
};

class ReadinessTable {
 public:
  ReadinessTable(const ControlTree& tree, const ResponseCache& cache)
      : tree_(tree), cache_(cache) {}

  // from: a rank, this one or a child. An unknown number is one that was evicted while it was under
  // way: its ranks will report the tensor in full when they hear of that, so it is ignored.
  void add_number(int from, std::uint64_t number, TimePoint time);
  void add_fresh(int from, const FreshReport& report, TimePoint time);
  void add_partial(int from, const PartialReport& report, TimePoint time);
  // These entries have left the cache: what is known by their number alone will be reported anew.
  void forget(const std::vector<ResponseCache::Entry>& evicted);

  // In the order in which they became complete.
  std::vector<CompleteTensor> take_complete();
  std::vector<Waiting> waiting() const;
  bool empty() const { return pending_.empty(); }

 private:
  struct Pending {
    TimePoint since;
    std::vector<bool> done;  // by source: 0 is this rank, then the children
    std::size_t done_count = 0;
    std::uint64_t number = 0;
    std::vector<int> number_sources;  // who gave the number instead of the description
    std::vector<Variant> variants;
    std::map<int, std::vector<std::uint32_t>> missing;  // by source: what a partial report said
  };

  int source_of(int rank) const;
  std::vector<int> ranks_of(int source) const;
  Pending& pending(const std::string& name, TimePoint time);
  void mark_done(const std::string& name, Pending& tensor, int source);
  void complete(const std::string& name, Pending& tensor);

  const ControlTree& tree_;
  const ResponseCache& cache_;
  std::unordered_map<std::string, Pending> pending_;
  std::vector<CompleteTensor> complete_;
};

}  // namespace hv::runtime
