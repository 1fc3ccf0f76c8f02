// What a node of negotiation.h lets others see: tensors that wait for long, and marks of the
// timeline.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <tuple>
#include <unordered_map>

#include "runtime/engine/negotiation/mismatch.h"
#include "runtime/engine/negotiation/negotiation.h"

namespace hv::runtime {

void Negotiation::look_round(TimePoint time) {
  if (tree_.is_root()) look_for_end(time);
  look_for_stalls(time);
  look_for_group_stalls(time);
  if (!tree_.is_root()) look_at_parent(time);
  for (const ControlTree::Child& child : tree_.children)
    messages_.emplace_back(child.rank, encode_control(ControlType::kAlive, Alive{config_.epoch}));
}

void Negotiation::look_at_parent(TimePoint time) {
  const auto oldest = std::min_element(
      awaiting_.begin(), awaiting_.end(),
      [](const auto& a, const auto& b) { return a.second.order < b.second.order; });
  if (oldest == awaiting_.end()) return;
  const TimePoint since = oldest->second.since;
  if (const auto silent = parent_watch_.inspect(since, time))
    silence_ = Silence{tree_.parent, oldest->first, time - since, *silent};
}

// At the root, where groups are put together.
void Negotiation::look_for_group_stalls(TimePoint time) {
  const std::vector<TensorGroups::Incomplete> incomplete = groups_.waiting();
  std::vector<Waiting> waiting;
  for (const auto& group : incomplete)
    waiting.push_back({std::to_string(group.group), group.since, {}, {}});
  for (const Waiting& stall : groups_inspector_.news(groups_inspector_.inspect(waiting, time))) {
    group_stalls_.push_back(*std::find_if(
        incomplete.begin(), incomplete.end(),
        [&](const auto& group) { return std::to_string(group.group) == stall.name; }));
  }
}

// A rank that has joined waits for those that have not.
std::vector<Waiting> Negotiation::waiting() const {
  std::vector<Waiting> all = readiness_.waiting();
  if (!has_joined_ || !tree_.is_root()) return all;
  Waiting join{kJoinName, joined_since_, {}, {}};
  for (std::uint32_t rank = 0; rank < static_cast<std::uint32_t>(tree_.size); ++rank)
    if (!joined_.has(rank)) join.missing.push_back(rank);
  all.push_back(std::move(join));
  return all;
}

void Negotiation::charge_open_waits(TimePoint time) {
  if (!has_open_waits()) return;
  std::vector<Waiting> waiting = readiness_.waiting();
  std::sort(waiting.begin(), waiting.end(), [](const Waiting& a, const Waiting& b) {
    return std::tie(a.since, a.missing) < std::tie(b.since, b.missing);
  });
  // What is charged to one rank is charged to no other: not past a wait that began before.
  for (const Waiting& one : waiting) {
    if (one.missing.size() != 1) return;
    readiness_.arrivals().still_waits(one.missing.front(), one.since, time);
  }
}

// Whoever has joined may wait for the others as long as they have data. Before a tensor ends the
// job its missing ranks are asked where they stand.
void Negotiation::look_for_end(TimePoint time) {
  if (config_.stall_end == Duration::zero() || has_ended_) return;
  for (Waiting& one : readiness_.waiting()) {
    if (time - one.since < config_.stall_end) continue;
    has_ended_ = true;
    ending_stall_ = one.name;
    questions_.ask({std::move(one)}, time, &messages_);
    return;
  }
  for (const auto& group : groups_.waiting()) {
    if (time - group.since < config_.stall_end) continue;
    has_ended_ = true;
    stall_end_ = ending_words(stall_words(group, time), config_.stall_end);
    return;
  }
}

// What has completed since it was asked for is no stall any more.
void Negotiation::tell_answered(TimePoint time) {
  std::vector<Waiting> told = questions_.take(time);
  if (told.empty()) return;
  std::unordered_map<std::string, TimePoint> open;
  for (Waiting& one : waiting()) open.emplace(std::move(one.name), one.since);
  const std::string ending = std::exchange(ending_stall_, {});
  has_ended_ = has_ended_ && ending.empty();
  for (Waiting& stall : told) {
    const auto still = open.find(stall.name);
    if (still == open.end() || still->second != stall.since) continue;
    if (stall.name == ending) {
      has_ended_ = true;
      stall_end_ =
          ending_words(stall_words(stall, config_.members, tree_.size, time), config_.stall_end);
    } else {
      stalls_.push_back(std::move(stall));
    }
  }
}

// Of ranks of this set, as the job counts them.
std::string Negotiation::words_for_mark(const std::vector<int>& ranks) const {
  return ranks_text({ranks.begin(), ranks.end()}, config_.members);
}

// A child speaks for its subtree.
void Negotiation::mark_ready(const ControlTree::Child& child, const Report& report,
                             std::vector<std::uint64_t> numbers) {
  Timeline& timeline = observation_->timeline;
  if (!timeline.is_on()) return;
  const std::string ranks = words_for_mark(child.subtree);
  for (const std::uint64_t bucket : report.buckets)
    if (const BucketNumbers* const of = prediction_.find(bucket))
      numbers.insert(numbers.end(), of->begin(), of->end());
  for (const std::uint64_t number : numbers)
    if (const ResponseCache::Entry* const entry = cache_.find(number))
      timeline.heard_of(config_.set, entry->name, ranks);
  for (const FreshReport& fresh : report.fresh) timeline.heard_of(config_.set, fresh.name, ranks);
}

void Negotiation::look_for_stalls(TimePoint time) {
  std::vector<Waiting> due = stalls_inspector_.inspect(waiting(), time);
  if (tree_.is_root()) {
    if (due.empty()) return;
    if (!questions_.is_holding()) {
      questions_.ask(std::move(due), time, &messages_);
    } else {  // that of one which ends the job: these are told as they are
      std::move(due.begin(), due.end(), std::back_inserter(stalls_));
    }
    return;
  }
  std::size_t bytes = 0;
  for (Waiting& stall : due) {
    bytes +=
        stall.name.size() + sizeof(std::uint32_t) * (stall.missing.size() + stall.silent.size());
    if (bytes > config_.message_bytes && !report_.empty()) {
      send_report();
      bytes = 0;
    }
    const auto waited =
        std::chrono::duration_cast<std::chrono::milliseconds>(time - stall.since).count();
    report_.partial.push_back({stall.name, static_cast<std::uint64_t>(waited),
                               std::move(stall.missing), std::move(stall.silent)});
  }
}

}  // namespace hv::runtime
