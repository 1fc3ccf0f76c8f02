// Ranks that have run out of data: until all have, they take part in reductions with zeros.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hv::runtime {

// Those of one node's subtree.
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

}  // namespace hv::runtime
