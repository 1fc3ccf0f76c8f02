// Tensors that were agreed on before, by number, so that the steady state exchanges numbers only.
// SPDX-License-Identifier: Apache-2.0
//
// Every rank inserts and touches in the order of the decisions it receives, which is the same
// everywhere: so numbers and evictions are equal on all ranks without a word about them. A number
// is never used twice.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/engine/tensor_description.h"

namespace hv::runtime {

class ResponseCache {
 public:
  struct Entry {
    std::uint64_t number = 0;
    std::string name;
    TensorDescription description;
    std::vector<std::int64_t> first_extents;  // where they vary: by rank
  };

  explicit ResponseCache(std::size_t capacity) : capacity_(capacity) {}

  const Entry* find(std::uint64_t number) const;
  const Entry* find(const std::string& name) const;
  // The entry was used: it is evicted after those that were not.
  void touch(std::uint64_t number);
  // Replaces an entry of the same name. Returns the entries that had to go.
  std::vector<Entry> insert(const std::string& name, const TensorDescription& description,
                            std::vector<std::int64_t> first_extents);
  std::size_t size() const { return entries_.size(); }

 private:
  using Position = std::list<Entry>::iterator;
  Entry remove(Position position);

  const std::size_t capacity_;
  std::uint64_t next_number_ = 1;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<std::uint64_t, Position> by_number_;
  std::unordered_map<std::string, Position> by_name_;
};

}  // namespace hv::runtime
