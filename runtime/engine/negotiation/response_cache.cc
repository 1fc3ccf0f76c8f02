// A list in order of use and two indices into it.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/negotiation/response_cache.h"

namespace hv::runtime {

const ResponseCache::Entry* ResponseCache::find(std::uint64_t number) const {
  const auto found = by_number_.find(number);
  return found == by_number_.end() ? nullptr : &*found->second;
}

const ResponseCache::Entry* ResponseCache::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &*found->second;
}

void ResponseCache::touch(std::uint64_t number) {
  const auto found = by_number_.find(number);
  if (found != by_number_.end()) entries_.splice(entries_.begin(), entries_, found->second);
}

ResponseCache::Entry ResponseCache::remove(Position position) {
  Entry entry = std::move(*position);
  by_number_.erase(entry.number);
  by_name_.erase(entry.name);
  entries_.erase(position);
  return entry;
}

std::vector<ResponseCache::Entry> ResponseCache::insert(const std::string& name,
                                                        const TensorDescription& description,
                                                        std::vector<std::int64_t> first_extents) {
  std::vector<Entry> gone;
  if (capacity_ == 0) return gone;
  if (const auto known = by_name_.find(name); known != by_name_.end())
    gone.push_back(remove(known->second));
  while (entries_.size() >= capacity_) gone.push_back(remove(std::prev(entries_.end())));
  entries_.push_front({next_number_++, name, description, std::move(first_extents)});
  by_number_[entries_.front().number] = entries_.begin();
  by_name_[name] = entries_.begin();
  return gone;
}

}  // namespace hv::runtime
