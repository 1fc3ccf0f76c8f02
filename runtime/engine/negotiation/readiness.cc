// Counting sources, and turning numbers into descriptions where ranks do not all mean the same.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/negotiation/readiness.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "src/base/check.h"

namespace hv::runtime {
namespace {

void merge(std::vector<Variant>& variants, const Variant& more) {
  for (Variant& known : variants) {
    if (known.description != more.description) continue;
    known.ranks.insert(known.ranks.end(), more.ranks.begin(), more.ranks.end());
    known.first_extents.insert(known.first_extents.end(), more.first_extents.begin(),
                               more.first_extents.end());
    return;
  }
  variants.push_back(more);
}

template <class Rank>
void append(std::vector<std::uint32_t>* ranks, const std::vector<Rank>& more) {
  for (const Rank rank : more) ranks->push_back(static_cast<std::uint32_t>(rank));
}

Variant variant_of(const ResponseCache::Entry& entry, const std::vector<int>& ranks) {
  Variant variant{entry.description, {}, {}};
  for (const int rank : ranks) {
    variant.ranks.push_back(static_cast<std::uint32_t>(rank));
    if (!entry.first_extents.empty()) {
      variant.first_extents.push_back(entry.first_extents[static_cast<std::size_t>(rank)]);
    }
  }
  return variant;
}

// In a report; a decision on it is no larger, but for the words of a refusal.
std::size_t bytes_of(const CompleteTensor& tensor) {
  constexpr std::size_t kLengths = 64;  // what has a fixed size, generously
  if (tensor.number != 0) return sizeof tensor.number;
  std::size_t bytes = kLengths + tensor.name.size();
  for (const Variant& variant : tensor.variants) {
    bytes += kLengths + 8 * variant.description.shape.size() + 4 * variant.ranks.size() +
             8 * variant.first_extents.size();
  }
  return bytes;
}

}  // namespace

int ReadinessTable::source_of(int rank) const {
  if (rank == tree_.self) return 0;
  for (std::size_t i = 0; i < tree_.children.size(); ++i) {
    if (tree_.children[i].rank == rank) return static_cast<int>(i) + 1;
  }
  check_failed(__FILE__, __LINE__, "reports come from this rank or its children",
               std::to_string(rank));
}

std::vector<int> ReadinessTable::ranks_of(int source) const {
  if (source == 0) return {tree_.self};
  return tree_.children[static_cast<std::size_t>(source) - 1].subtree;
}

std::vector<int> ReadinessTable::all_ranks() const {
  std::vector<int> ranks{tree_.self};
  for (const ControlTree::Child& child : tree_.children)
    ranks.insert(ranks.end(), child.subtree.begin(), child.subtree.end());
  return ranks;
}

ReadinessTable::Pending& ReadinessTable::pending(const std::string& name, TimePoint time) {
  const auto [found, is_new] = pending_.try_emplace(name);
  if (is_new) {
    found->second.since = time;
    found->second.done = joined_;
    found->second.done_count =
        static_cast<std::size_t>(std::count(joined_.begin(), joined_.end(), true));
    found->second.has_absent = found->second.done_count > 0;
  }
  return found->second;
}

void ReadinessTable::mark_done(const std::string& name, Pending& tensor, int source) {
  tensor.told.erase(source);
  tensor.done[static_cast<std::size_t>(source)] = true;
  if (++tensor.done_count == tensor.done.size()) complete(name, tensor);
}

void ReadinessTable::arrive(const std::string& name, Pending& tensor, int source, int rank,
                            TimePoint time) {
  if (tensor.done_count + 1 == tensor.done.size()) arrivals_.completed(rank, tensor.since, time);
  mark_done(name, tensor, source);
}

bool ReadinessTable::add_number(int from, std::uint64_t number, TimePoint time) {
  const int source = source_of(from);
  if (joined_[static_cast<std::size_t>(source)]) return true;
  const ResponseCache::Entry* entry = cache_.find(number);
  if (entry == nullptr) {
    const auto found = retired_.find(number);
    if (found == retired_.end()) return false;
    add_fresh(from, {found->second.name, {variant_of(found->second, ranks_of(source))}}, time);
    return true;
  }
  Pending& tensor = pending(entry->name, time);
  if (tensor.done[static_cast<std::size_t>(source)]) return true;
  tensor.number = number;
  tensor.number_sources.push_back(source);
  arrive(entry->name, tensor, source, from, time);
  return true;
}

void ReadinessTable::add_fresh(int from, const FreshReport& report, TimePoint time) {
  const int source = source_of(from);
  if (joined_[static_cast<std::size_t>(source)]) return;
  Pending& tensor = pending(report.name, time);
  if (tensor.done[static_cast<std::size_t>(source)]) return;
  for (const Variant& variant : report.variants) merge(tensor.variants, variant);
  arrive(report.name, tensor, source, from, time);
}

void ReadinessTable::add_partial(int from, const PartialReport& report, TimePoint time) {
  const int source = source_of(from);
  if (joined_[static_cast<std::size_t>(source)]) return;
  const auto waited =
      std::chrono::milliseconds(std::min<std::uint64_t>(report.waited_ms, 1u << 30));
  Pending& tensor = pending(report.name, time);
  if (tensor.done[static_cast<std::size_t>(source)]) return;
  tensor.since = std::min(tensor.since, time - waited);
  tensor.told[source] = {report.missing, report.silent};
}

void ReadinessTable::join(int from) {
  const int source = source_of(from);
  joined_[static_cast<std::size_t>(source)] = true;
  std::vector<std::string> names;  // completing takes a tensor out of the table
  for (const auto& [name, tensor] : pending_)
    if (!tensor.done[static_cast<std::size_t>(source)]) names.push_back(name);
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    Pending& tensor = pending_.at(name);
    tensor.has_absent = true;
    mark_done(name, tensor, source);
  }
}

void ReadinessTable::all_joined() { joined_.assign(joined_.size(), false); }

void ReadinessTable::spell_out(Pending& tensor, const ResponseCache::Entry& entry) const {
  for (const int source : std::exchange(tensor.number_sources, {}))
    merge(tensor.variants, variant_of(entry, ranks_of(source)));
  tensor.number = 0;
}

void ReadinessTable::forget(const std::vector<ResponseCache::Entry>& evicted,
                            std::uint64_t decisions) {
  for (const ResponseCache::Entry& entry : evicted) {
    const auto found = pending_.find(entry.name);
    if (found != pending_.end() && found->second.number == entry.number)
      spell_out(found->second, entry);
    for (CompleteTensor& tensor : complete_) {
      if (tensor.number != entry.number) continue;
      tensor.variants = {variant_of(entry, all_ranks())};
      tensor.number = 0;
    }
    if (tree_.children.empty()) continue;
    retired_.emplace(entry.number, entry);
    retirements_.push_back({decisions, entry.number});
  }
}

std::uint64_t ReadinessTable::acknowledged() const {
  const auto least = std::min_element(acknowledged_.begin(), acknowledged_.end());
  return least == acknowledged_.end() ? UINT64_MAX : *least;
}

void ReadinessTable::acknowledge(int child, std::uint64_t decisions) {
  acknowledged_[static_cast<std::size_t>(source_of(child)) - 1] = decisions;
  if (retirements_.empty()) return;
  const std::uint64_t everybody = acknowledged();
  while (!retirements_.empty() && retirements_.front().decisions <= everybody) {
    retired_.erase(retirements_.front().number);
    retirements_.pop_front();
  }
}

void ReadinessTable::complete(const std::string& name, Pending& tensor) {
  if ((!tensor.variants.empty() || tensor.has_absent) && tensor.number != 0) {
    // Some gave the number, some a description or nothing: all in full, so that the root can
    // compare.
    const ResponseCache::Entry* entry = cache_.find(tensor.number);
    HV_CHECK(entry != nullptr, "numbers of evicted entries have been forgotten");
    spell_out(tensor, *entry);
  }
  // Neither: only partial reports spoke of it, of ranks that have joined since.
  const std::string own_name = name;  // may be the entry's own
  if (tensor.number != 0 || !tensor.variants.empty())
    complete_.push_back({own_name, tensor.number, std::move(tensor.variants)});
  pending_.erase(own_name);
}

std::vector<CompleteTensor> ReadinessTable::take_complete(std::size_t most_bytes) {
  std::size_t count = 0, bytes = 0;
  for (; count < complete_.size(); ++count) {
    bytes += bytes_of(complete_[count]);
    if (bytes > most_bytes && count > 0) break;
  }
  if (count == complete_.size()) return std::exchange(complete_, {});
  const auto end = complete_.begin() + static_cast<std::ptrdiff_t>(count);
  std::vector<CompleteTensor> taken(std::make_move_iterator(complete_.begin()),
                                    std::make_move_iterator(end));
  complete_.erase(complete_.begin(), end);
  return taken;
}

std::vector<Waiting> ReadinessTable::waiting() const {
  std::vector<Waiting> result;
  for (const auto& [name, tensor] : pending_) {
    Waiting waiting{name, tensor.since, {}, {}};
    for (std::size_t source = 0; source < tensor.done.size(); ++source) {
      if (tensor.done[source]) continue;
      const auto told = tensor.told.find(static_cast<int>(source));
      if (told != tensor.told.end()) {
        append(&waiting.missing, told->second.missing);
        append(&waiting.silent, told->second.silent);
        continue;
      }
      const std::vector<int> ranks = ranks_of(static_cast<int>(source));
      append(&waiting.missing, ranks);
      if (ranks.size() > 1)
        waiting.silent.push_back(static_cast<std::uint32_t>(tree_.children[source - 1].rank));
    }
    std::sort(waiting.missing.begin(), waiting.missing.end());
    std::sort(waiting.silent.begin(), waiting.silent.end());
    result.push_back(std::move(waiting));
  }
  return result;
}

}  // namespace hv::runtime
