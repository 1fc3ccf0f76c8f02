// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/rendezvous/rank_rendezvous.h"

#include <algorithm>

namespace hv::launcher {

void RankRendezvous::join(std::uint32_t rank, std::uint32_t epoch) {
  Epoch& state = epochs_[epoch];
  ++state.joins[rank];
  state.joined.insert(rank);
  state.waiting.erase(rank);
}

void RankRendezvous::leave(std::uint32_t rank, std::uint32_t epoch) {
  Epoch& state = epochs_[epoch];
  state.joined.erase(rank);
  state.waiting.erase(rank);
  if (state.joined.empty()) state.store.clear();
}

bool RankRendezvous::is_joined(std::uint32_t rank) const {
  return std::any_of(epochs_.begin(), epochs_.end(),
                     [rank](const auto& entry) { return entry.second.joined.count(rank) > 0; });
}

bool RankRendezvous::has_ever_joined(std::uint32_t rank) const {
  return std::any_of(epochs_.begin(), epochs_.end(),
                     [rank](const auto& entry) { return entry.second.joins_of(rank) > 0; });
}

bool RankRendezvous::has_ended_in_order(std::uint32_t rank) const {
  return ended_.count(rank) > 0 && has_ever_joined(rank) && !is_joined(rank);
}

bool RankRendezvous::has_waiting_rank() const {
  return std::any_of(epochs_.begin(), epochs_.end(),
                     [](const auto& entry) { return !entry.second.waiting.empty(); });
}

bool RankRendezvous::is_waiting(std::uint32_t rank) const {
  return !ended_.count(rank) &&
         std::any_of(epochs_.begin(), epochs_.end(),
                     [rank](const auto& entry) { return entry.second.waiting.count(rank) > 0; });
}

std::vector<std::uint32_t> RankRendezvous::absent() const {
  std::vector<std::uint32_t> ranks;
  for (const std::uint32_t rank : local_)
    if (!is_waiting(rank) && !ended_.count(rank)) ranks.push_back(rank);
  return ranks;
}

bool RankRendezvous::put(std::uint32_t rank, std::uint32_t epoch, std::string key,
                         std::string value) {
  Epoch& state = epochs_[epoch];
  state.put_bytes += key.size() + value.size() + 64;
  if (state.put_bytes > kMostBytes) return false;
  state.puts.push_back({rank, std::move(key), std::move(value)});
  return true;
}

void RankRendezvous::come_to_fence(std::uint32_t rank, std::uint32_t epoch, std::uint32_t number) {
  epochs_[epoch].waiting[rank] = number;
}

// round: which join of its ranks, counted from 1, the fence belongs to. A rank that has left that
// round is not waited for; a rank that left an earlier round is, because its next program will
// join, unless the rank has ended. A rank that ended without leaving, or without joining, is waited
// for until its loss is reported: if the fence ended, the others would get keys that it never put.
bool RankRendezvous::is_awaited(const Epoch& epoch, std::uint32_t rank, std::uint32_t round,
                                std::uint32_t fence) const {
  const std::uint32_t joins = epoch.joins_of(rank);
  if (joins > round) return false;
  if (joins < round) return !has_ended_in_order(rank);
  if (!epoch.joined.count(rank)) return false;
  const auto found = epoch.waiting.find(rank);
  return found == epoch.waiting.end() || found->second != fence;
}

std::optional<std::uint32_t> RankRendezvous::complete_fence(const Epoch& epoch) const {
  if (epoch.waiting.empty() || epoch.reported) return std::nullopt;
  const auto [first, fence] = *epoch.waiting.begin();
  const std::uint32_t round = epoch.joins_of(first);
  for (const std::uint32_t rank : local_) {
    if (is_awaited(epoch, rank, round, fence)) return std::nullopt;
  }
  return fence;
}

std::vector<wire::FenceIn> RankRendezvous::complete() {
  std::vector<wire::FenceIn> fences;
  for (auto& [number, epoch] : epochs_) {
    const auto fence = complete_fence(epoch);
    if (!fence) continue;
    epoch.reported = fence;
    epoch.put_bytes = 0;
    fences.push_back({number, *fence, std::exchange(epoch.puts, {})});
  }
  return fences;
}

std::vector<std::uint32_t> RankRendezvous::pass(const wire::FenceOut& out) {
  std::vector<std::uint32_t> ranks;
  const auto found = epochs_.find(out.epoch);
  if (found == epochs_.end() || found->second.reported != out.number) return ranks;
  Epoch& epoch = found->second;
  epoch.reported.reset();
  for (const wire::FencePut& put : out.puts) epoch.store[{put.rank, put.key}] = put.value;
  for (const auto& [rank, number] : epoch.waiting) {
    if (number == out.number) ranks.push_back(rank);
  }
  for (const std::uint32_t rank : ranks) epoch.waiting.erase(rank);
  return ranks;
}

const std::string* RankRendezvous::get(std::uint32_t epoch, std::uint32_t rank,
                                       const std::string& key) const {
  const auto found = epochs_.find(epoch);
  if (found == epochs_.end()) return nullptr;
  const auto value = found->second.store.find({rank, key});
  return value == found->second.store.end() ? nullptr : &value->second;
}

}  // namespace hv::launcher
