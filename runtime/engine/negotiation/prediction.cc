// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/negotiation/prediction.h"

#include <algorithm>
#include <utility>

#include "src/base/check.h"

namespace hv::runtime {

void Prediction::announce(const std::vector<BucketNumbers>& buckets) {
  for (const BucketNumbers& numbers : buckets) {
    for (const std::uint64_t number : numbers) bucket_of_[number] = next_bucket_;
    Bucket& bucket = buckets_[next_bucket_++];
    bucket.numbers = numbers;
    bucket.done.resize(tree_.children.size() + 1);
  }
}

const BucketNumbers* Prediction::find(std::uint64_t bucket) const {
  const auto found = buckets_.find(bucket);
  return found == buckets_.end() ? nullptr : &found->second.numbers;
}

const BucketNumbers* Prediction::find_given_up(std::uint64_t bucket) const {
  const auto found = given_up_.find(bucket);
  return found == given_up_.end() ? nullptr : &found->second.numbers;
}

void Prediction::touch(Bucket& bucket, TimePoint time) {
  if (bucket.done_count > 0 || !bucket.held.empty()) return;
  bucket.since = time;
  ++touched_;
}

int Prediction::rank_of(std::size_t source) const {
  return source == 0 ? tree_.self : tree_.children[source - 1].rank;
}

std::size_t Prediction::source_of(int rank) const {
  if (rank == tree_.self) return 0;
  const auto place =
      std::find_if(tree_.children.begin(), tree_.children.end(),
                   [rank](const ControlTree::Child& one) { return one.rank == rank; });
  HV_CHECK(place != tree_.children.end(), "buckets are this rank's or its children's");
  return static_cast<std::size_t>(place - tree_.children.begin()) + 1;
}

void Prediction::mark_done(std::uint64_t id, Bucket& bucket, std::size_t source, TimePoint time) {
  if (bucket.done[source]) return;
  bucket.done[source] = true;
  if (bucket.done_count++ == 0) bucket.whole_since = time;
  if (bucket.done_count < bucket.done.size()) return;
  whole_.push_back(id);
  arrivals_.completed(rank_of(source), bucket.whole_since, time);
}

void Prediction::hold(std::uint64_t number, TimePoint time) {
  const std::uint64_t id = bucket_of_.at(number);
  Bucket& bucket = buckets_.at(id);
  touch(bucket, time);
  if (bucket.held.empty()) {
    bucket.held_since = time;
    ++holding_;
  }
  bucket.held.push_back(number);
  if (bucket.held.size() < bucket.numbers.size()) return;
  bucket.held.clear();
  --holding_;
  mark_done(id, bucket, 0, time);
}

bool Prediction::add(int child, std::uint64_t bucket, TimePoint time) {
  const auto found = buckets_.find(bucket);
  if (found == buckets_.end()) return false;
  touch(found->second, time);
  mark_done(bucket, found->second, source_of(child), time);
  return true;
}

std::vector<std::uint64_t> Prediction::take_whole() {
  for (const std::uint64_t id : whole_) {
    Bucket& bucket = buckets_.at(id);
    bucket.done.assign(bucket.done.size(), false);
    bucket.done_count = 0;
    --touched_;
  }
  return std::exchange(whole_, {});
}

bool Prediction::is_held(std::uint64_t number) const {
  const auto found = bucket_of_.find(number);
  if (found == bucket_of_.end()) return false;
  const BucketNumbers& held = buckets_.at(found->second).held;
  return std::find(held.begin(), held.end(), number) != held.end();
}

TimePoint Prediction::held_since() const {
  TimePoint oldest = TimePoint::max();
  for (const auto& [id, bucket] : buckets_)
    if (!bucket.held.empty()) oldest = std::min(oldest, bucket.held_since);
  return oldest;
}

TimePoint Prediction::open_since() const {
  TimePoint oldest = TimePoint::max();
  for (const auto& [id, bucket] : buckets_)
    if (bucket.done_count > 0 || !bucket.held.empty()) oldest = std::min(oldest, bucket.since);
  return oldest;
}

void Prediction::append_ready(const Bucket& bucket, std::size_t source,
                              std::vector<Ready>* ready) const {
  const BucketNumbers none;
  const BucketNumbers& numbers =
      bucket.done[source] ? bucket.numbers : (source == 0 ? bucket.held : none);
  for (const std::uint64_t number : numbers)
    ready->push_back({rank_of(source), number, bucket.since});
}

std::vector<Prediction::Ready> Prediction::spell_out(int source_rank) {
  const std::size_t source = source_of(source_rank);
  std::vector<Ready> ready;
  for (auto& [id, bucket] : buckets_) {
    const bool was_touched = bucket.done_count > 0 || !bucket.held.empty();
    append_ready(bucket, source, &ready);
    if (source == 0 && !bucket.held.empty()) {
      bucket.held.clear();
      --holding_;
    }
    if (bucket.done[source]) {
      if (bucket.done_count == bucket.done.size()) std::erase(whole_, id);
      bucket.done[source] = false;
      --bucket.done_count;
    }
    if (was_touched && bucket.done_count == 0 && bucket.held.empty()) --touched_;
  }
  return ready;
}

std::vector<Prediction::Ready> Prediction::give_up(std::uint64_t decisions) {
  std::vector<Ready> ready;
  for (auto& [id, bucket] : buckets_) {
    for (std::size_t source = 0; source < bucket.done.size(); ++source)
      append_ready(bucket, source, &ready);
    if (!tree_.children.empty()) given_up_[id] = {decisions, std::move(bucket.numbers)};
  }
  buckets_.clear();
  bucket_of_.clear();
  whole_.clear();
  holding_ = touched_ = 0;
  ++plan_;
  return ready;
}

void Prediction::acknowledge(std::uint64_t decisions) {
  std::erase_if(given_up_, [&](const auto& one) { return one.second.decisions <= decisions; });
}

}  // namespace hv::runtime
