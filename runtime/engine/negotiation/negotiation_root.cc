// The root's part of negotiation.h: what is complete becomes decisions.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <span>
#include <tuple>

#include "runtime/engine/negotiation/fusion_plan.h"
#include "runtime/engine/negotiation/mismatch.h"
#include "runtime/engine/negotiation/negotiation.h"
#include "src/base/check.h"

namespace hv::runtime {
namespace {

// Ranks that disagree on a tensor may count it among several groups.
std::vector<Variant> first_of_each_group(const std::vector<Variant>& variants) {
  std::vector<Variant> result;
  for (const Variant& variant : variants) {
    const bool is_known = std::any_of(result.begin(), result.end(), [&](const Variant& known) {
      return known.description.group == variant.description.group;
    });
    if (!is_known) result.push_back(variant);
  }
  return result;
}

// What travels together of tensors that are ready.
void add_groups(std::span<ReadyTensor> ready, std::int64_t threshold_bytes, Decision* decision) {
  std::vector<const TensorDescription*> tensors;
  for (const ReadyTensor& tensor : ready) tensors.push_back(&tensor.description);
  for (const auto& members : plan_fusion(tensors, threshold_bytes)) {
    Group& group = decision->groups.emplace_back();
    for (const std::size_t i : members) {
      if (ready[i].number != 0) {
        group.numbers.push_back(ready[i].number);
      } else {
        group.fresh.push_back(std::move(ready[i].fresh));
      }
    }
  }
}

// Where they vary, each rank's own first extent, by rank.
std::vector<std::int64_t> extents_by_rank(const Variant& variant, int size) {
  if (variant.first_extents.empty()) return {};
  std::vector<std::int64_t> extents(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < variant.ranks.size(); ++i)
    extents[variant.ranks[i]] = variant.first_extents[i];
  return extents;
}

}  // namespace

std::vector<ReadyTensor> Negotiation::collect_ready(Decision& decision, TimePoint time) {
  for (CompleteTensor& tensor : readiness_.take_complete(config_.message_bytes)) {
    Status verdict = judge(tensor.name, tensor.variants, config_.members);
    if (verdict.ok()) verdict = judge_absence(tensor, joined_, config_.members, tree_.size);
    if (!verdict.ok()) {
      decision.refusals.push_back(
          {tensor.name, static_cast<std::uint32_t>(verdict.code), verdict.message});
      for (const Variant& variant : first_of_each_group(tensor.variants))
        groups_.refuse(tensor.name, variant.description, verdict);
      continue;
    }
    groups_.add(ready_tensor(tensor), time);
  }
  std::vector<ReadyTensor> ready = groups_.take_whole(config_.message_bytes);
  std::sort(ready.begin(), ready.end(), [](const ReadyTensor& a, const ReadyTensor& b) {
    return std::tie(a.fresh.present, a.order) < std::tie(b.fresh.present, b.order);
  });
  return ready;
}

ReadyTensor Negotiation::ready_tensor(const CompleteTensor& tensor) {
  const auto own = awaiting_.find(tensor.name);
  HV_CHECK(own != awaiting_.end() || has_joined_,
           "the root itself has what is complete: " + tensor.name);
  ReadyTensor ready;
  ready.order = own != awaiting_.end() ? own->second.order : submissions_++;
  ready.name = tensor.name;
  ready.number = tensor.number;
  if (tensor.number != 0) {
    ready.description = own->second.submission.description;
    return ready;
  }
  const Variant& variant = tensor.variants.front();
  ready.description = variant.description;
  ready.fresh.name = tensor.name;
  ready.fresh.first_extents = extents_by_rank(variant, tree_.size);
  if (variant.ranks.size() == static_cast<std::size_t>(tree_.size)) return ready;
  ready.fresh.present = static_cast<std::uint32_t>(variant.ranks.size());
  ready.fresh.description = {variant.description};
  return ready;
}

void Negotiation::decide(TimePoint time) {
  do {
    Decision decision = next_decision(time);
    if (decision.empty()) continue;  // all of it waits for its group
    send_down(decision);
    HV_CHECK(apply(decision), "the root decides on what it has itself");
  } while (readiness_.has_complete() || groups_.has_output());
}

Decision Negotiation::next_decision(TimePoint time) {
  Decision decision;
  decision.epoch = config_.epoch;
  decision.launches = std::exchange(launches_, {});
  for (const std::uint64_t bucket : prediction_.take_whole())
    decision.groups.push_back({.bucket = bucket});
  std::vector<ReadyTensor> ready = collect_ready(decision, time);
  // What not all ranks have travels apart: its average may have another divisor.
  for (auto begin = ready.begin(); begin != ready.end();) {
    const auto end = std::find_if(begin, ready.end(), [&](const ReadyTensor& tensor) {
      return tensor.fresh.present != begin->fresh.present;
    });
    add_groups(std::span(begin, end), config_.fusion_threshold_bytes, &decision);
    begin = end;
  }
  plan_buckets(&decision);
  const bool is_all = !readiness_.has_complete();
  const bool have_all_joined = joined_.size() == static_cast<std::size_t>(tree_.size);
  if (is_all && have_all_joined) groups_.refuse_incomplete();
  for (Refusal& refusal : groups_.take_refusals(config_.message_bytes))
    decision.refusals.push_back(std::move(refusal));
  if (is_all && have_all_joined && !groups_.has_output())
    decision.last_joined = static_cast<std::int32_t>(joined_.last());
  // Whoever leaves, or ends the job, is the last word.
  if (!is_all || groups_.has_output()) return decision;
  if (!ending_.empty()) {
    decision.ending = ending_;
  } else if (!leaving_.empty()) {
    decision.leaving = static_cast<std::int32_t>(leaving_.front());
  }
  return decision;
}

}  // namespace hv::runtime
