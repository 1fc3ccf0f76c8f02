// Buckets in the negotiation: held, known, announced, given up. See prediction.h.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_set>

#include "runtime/engine/negotiation/fusion_plan.h"
#include "runtime/engine/negotiation/negotiation.h"
#include "src/base/check.h"

namespace hv::runtime {
namespace {

// A caller who neither waits for a tensor nor enqueues the rest of its bucket gets it after this.
constexpr Duration kHoldingLimit = std::chrono::seconds(1);

}  // namespace

void Negotiation::await(const std::string& name) {
  const auto own = awaiting_.find(name);
  if (own == awaiting_.end()) return;
  const ResponseCache::Entry* known = cache_.find(name);
  if (known != nullptr && prediction_.is_held(known->number)) deviate();
}

// The stall inspector looks at tensors, not at buckets: long before it speaks they are spelled out.
TimePoint Negotiation::patience_ends() const {
  TimePoint end = TimePoint::max();
  if (has_deviated_ || !prediction_.is_open()) return end;
  if (const TimePoint since = prediction_.held_since(); since != end) end = since + kHoldingLimit;
  const Duration limit = shorter_limit(config_.stall_limit, config_.stall_end);
  if (limit > Duration::zero()) end = std::min(end, prediction_.open_since() + limit / 4);
  return end;
}

void Negotiation::deviate() {
  if (!prediction_.is_live() || std::exchange(has_deviated_, true)) return;
  if (tree_.is_root()) {
    is_given_up_ = true;
  } else {
    report_.deviates = prediction_.plan();
  }
}

bool Negotiation::take_buckets(const Report& report, int from, TimePoint time) {
  for (const std::uint64_t bucket : report.buckets) {
    if (prediction_.add(from, bucket, time)) continue;
    const BucketNumbers* numbers = prediction_.find_given_up(bucket);
    if (numbers == nullptr) return false;
    for (const std::uint64_t number : *numbers)
      if (!readiness_.add_number(from, number, time)) return false;
  }
  if (report.deviates == prediction_.plan()) deviate();
  return true;
}

void Negotiation::give_up_buckets() {
  has_deviated_ = false;
  is_given_up_ = false;
  report_.deviates = 0;
  if (!prediction_.is_live()) return;
  observation_->counters.given_up_buckets.add(prediction_.live());
  count_ready(prediction_.give_up(decisions_));
  planner_.given_up();
}

void Negotiation::count_ready(const std::vector<Prediction::Ready>& all) {
  for (const Prediction::Ready& ready : all) {
    HV_CHECK(readiness_.add_number(ready.rank, ready.number, ready.since),
             "buckets are given up before the cache loses their tensors");
  }
}

// What it gave before it joined counts, tensor by tensor; all else it counts as ready for.
void Negotiation::join_readiness(int source) {
  count_ready(prediction_.spell_out(source));
  readiness_.join(source);
}

// False when a bucket holds what it may not.
bool Negotiation::announce(const std::vector<BucketNumbers>& buckets) {
  std::unordered_set<std::uint64_t> seen;
  for (const BucketNumbers& numbers : buckets) {
    const TensorDescription* first = nullptr;
    for (const std::uint64_t number : numbers) {
      const ResponseCache::Entry* entry = cache_.find(number);
      if (entry == nullptr || prediction_.covers(number) || !seen.insert(number).second)
        return false;
      if (first != nullptr && !can_share(*first, entry->description)) return false;
      first = &entry->description;
    }
    if (numbers.size() < 2) return false;
  }
  prediction_.announce(buckets);
  // Ready once more before this came, and not by bucket: the bucket would never be whole.
  for (const std::uint64_t number : seen)
    if (readiness_.is_pending(cache_.find(number)->name)) deviate();
  return true;
}

// At the root: what this decision starts is what the planner sees.
void Negotiation::plan_buckets(Decision* decision) {
  decision->gives_up = std::exchange(is_given_up_, false);
  bool is_all_known = true;
  for (const Group& group : decision->groups) {
    is_all_known = is_all_known && group.fresh.empty();
    if (group.bucket != 0) {
      planner_.kept();
      continue;
    }
    for (const std::uint64_t number : group.numbers) {
      const ResponseCache::Entry* entry = cache_.find(number);
      const auto own = awaiting_.find(entry->name);
      if (own != awaiting_.end())
        planner_.observe(number, entry->description, own->second.submission.phase);
    }
  }
  std::vector<BucketNumbers> plan = planner_.take_plan();
  // A tensor of the step may have come in another shape since, and its number be gone.
  std::erase_if(plan, [&](const BucketNumbers& numbers) {
    return std::any_of(numbers.begin(), numbers.end(),
                       [&](std::uint64_t number) { return cache_.find(number) == nullptr; });
  });
  // A fresh tensor may push one of them out of the cache, and who has joined takes no part.
  if (is_all_known && !decision->gives_up && joined_.empty() && !readiness_.has_complete())
    decision->buckets = std::move(plan);
}

}  // namespace hv::runtime
