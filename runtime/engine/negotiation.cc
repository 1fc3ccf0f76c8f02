// The steps (a) to (e) of negotiation.h.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/negotiation.h"

#include <algorithm>
#include <cstdint>

#include "runtime/engine/fusion_plan.h"
#include "runtime/engine/mismatch.h"
#include "src/base/check.h"
#include "src/base/text.h"

namespace hv::runtime {
namespace {

constexpr std::size_t kMostFailureBytes = 2000;

Status bad_message(int from, const char* what) {
  return {StatusCode::kSystem,
          "rank " + std::to_string(from) + " sent " + what +
              " while ranks agreed on what is ready; do all ranks run the same libhvrun?"};
}

bool are_of(const std::vector<std::uint32_t>& ranks, const std::vector<int>& subtree) {
  return std::all_of(ranks.begin(), ranks.end(), [&](std::uint32_t rank) {
    return rank <= INT32_MAX &&
           std::binary_search(subtree.begin(), subtree.end(), static_cast<int>(rank));
  });
}

// A tensor is reported once every rank of the sender's subtree has it: each of them stands in one
// variant, once, and nobody else does.
bool is_valid(const FreshReport& report, const std::vector<int>& subtree) {
  std::vector<std::uint32_t> speakers;
  for (const Variant& variant : report.variants) {
    const bool gathers = variant.description.kind == CollectiveKind::kAllgather;
    if (!variant.description.is_valid() ||
        variant.first_extents.size() != (gathers ? variant.ranks.size() : 0)) {
      return false;
    }
    for (const std::int64_t extent : variant.first_extents) {
      if (extent < 0) return false;
    }
    if (speakers.size() + variant.ranks.size() > subtree.size()) return false;
    speakers.insert(speakers.end(), variant.ranks.begin(), variant.ranks.end());
  }
  std::sort(speakers.begin(), speakers.end());
  return std::equal(speakers.begin(), speakers.end(), subtree.begin(), subtree.end(),
                    [](std::uint32_t a, int b) { return a == static_cast<std::uint32_t>(b); });
}

bool is_valid(const Report& report, const std::vector<int>& subtree) {
  return report.leaving.size() <= subtree.size() && are_of(report.leaving, subtree) &&
         std::all_of(report.fresh.begin(), report.fresh.end(),
                     [&](const FreshReport& fresh) { return is_valid(fresh, subtree); }) &&
         std::all_of(report.partial.begin(), report.partial.end(),
                     [&](const PartialReport& partial) {
                       return partial.missing.size() <= subtree.size() &&
                              partial.silent.size() <= subtree.size() &&
                              are_of(partial.missing, subtree) && are_of(partial.silent, subtree);
                     });
}

// Allgather: each rank's own first extent, by rank.
std::vector<std::int64_t> extents_by_rank(const Variant& variant, int size) {
  if (variant.first_extents.empty()) return {};
  std::vector<std::int64_t> extents(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < variant.ranks.size(); ++i)
    extents[variant.ranks[i]] = variant.first_extents[i];
  return extents;
}

}  // namespace

// A tensor that the root may start.
struct Negotiation::Ready {
  std::uint64_t order = 0;  // of submission on rank 0
  std::uint64_t number = 0;
  FreshTensor fresh;
  TensorDescription description;
};

Negotiation::Negotiation(const NegotiationConfig& config, ControlTree tree)
    : config_(config),
      tree_(std::move(tree)),
      cache_(config.cache_capacity),
      readiness_(tree_, cache_),
      // Below the root a stall is passed on earlier, so that the root can name every rank when it
      // speaks.
      stalls_inspector_(tree_.is_root() ? config.stall_limit : config.stall_limit / 2),
      parent_watch_(config.stall_limit) {}

void Negotiation::submit(Submission submission, TimePoint time) {
  if (is_over_) return;
  const ResponseCache::Entry* known = cache_.find(submission.name);
  bool is_cached = known != nullptr && known->description == submission.description;
  if (is_cached && !known->first_extents.empty()) {
    is_cached =
        known->first_extents[static_cast<std::size_t>(tree_.self)] == submission.first_extent;
  }
  if (is_cached) {
    readiness_.add_number(tree_.self, known->number, time);
  } else {
    Variant own{submission.description, {static_cast<std::uint32_t>(tree_.self)}, {}};
    if (own.description.kind == CollectiveKind::kAllgather)
      own.first_extents = {submission.first_extent};
    readiness_.add_fresh(tree_.self, {submission.name, {std::move(own)}}, time);
  }
  const std::string name = submission.name;
  const bool is_new =
      awaiting_.try_emplace(name, Awaiting{std::move(submission), submissions_++, time}).second;
  HV_CHECK(is_new, "a name in flight was refused before: " + name);
}

void Negotiation::leave() {
  const auto self = static_cast<std::uint32_t>(tree_.self);
  (tree_.is_root() ? leaving_ : report_.leaving).push_back(self);
}

Status Negotiation::receive(int from, std::string_view message, TimePoint time) {
  if (message.empty()) return bad_message(from, "an empty message");
  const auto type = static_cast<ControlType>(message.front());
  message.remove_prefix(1);
  const auto child =
      std::find_if(tree_.children.begin(), tree_.children.end(),
                   [from](const ControlTree::Child& one) { return one.rank == from; });
  const bool is_child = child != tree_.children.end();
  const bool is_parent = !tree_.is_root() && from == tree_.parent;
  if (is_parent) parent_watch_.heard(time);
  if (type == ControlType::kReport && is_child) return receive_report(*child, message, time);
  if (type == ControlType::kDecision && is_parent) return receive_decision(message);
  if (type == ControlType::kAlive && is_parent) return receive_sign_of_life(message);
  if (type == ControlType::kFailure && (is_child || is_parent)) {
    return receive_failure(from, message);
  }
  return bad_message(from, "a message that is not its to send");
}

Status Negotiation::receive_failure(int from, std::string_view bytes) {
  Failure failure;
  if (!decode(bytes, &failure) || failure.epoch != config_.epoch) {
    return bad_message(from, "a broken word of failure");
  }
  return {StatusCode::kPeerLost, printable(failure.words, kMostFailureBytes)};
}

void Negotiation::tell_failure(const std::string& words) {
  const std::string message = encode_control(
      ControlType::kFailure, Failure{config_.epoch, words.substr(0, kMostFailureBytes)});
  if (!tree_.is_root()) messages_.emplace_back(tree_.parent, message);
  for (const ControlTree::Child& child : tree_.children)
    messages_.emplace_back(child.rank, message);
}

Status Negotiation::receive_report(const ControlTree::Child& child, std::string_view bytes,
                                   TimePoint time) {
  const int from = child.rank;
  Report report;
  if (!decode(bytes, &report) || report.epoch != config_.epoch)
    return bad_message(from, "a broken report");
  if (is_over_) return Status::success();  // it had not heard yet that somebody left
  if (!is_valid(report, child.subtree) || report.decisions > decisions_)
    return bad_message(from, "a report that cannot be");
  for (const std::uint64_t number : report.numbers) {
    if (!readiness_.add_number(from, number, time))
      return bad_message(from, "the number of a tensor that nobody knows");
  }
  for (const FreshReport& fresh : report.fresh) readiness_.add_fresh(from, fresh, time);
  for (const PartialReport& partial : report.partial) readiness_.add_partial(from, partial, time);
  readiness_.acknowledge(from, report.decisions);
  auto& leaving = tree_.is_root() ? leaving_ : report_.leaving;
  leaving.insert(leaving.end(), report.leaving.begin(), report.leaving.end());
  return Status::success();
}

Status Negotiation::receive_decision(std::string_view bytes) {
  Decision decision;
  if (!decode(bytes, &decision) || decision.epoch != config_.epoch ||
      decision.leaving >= tree_.size) {
    return bad_message(tree_.parent, "a broken decision");
  }
  send_down(decision);
  return apply(decision) ? Status::success()
                         : bad_message(tree_.parent, "a decision on what was not reported");
}

Status Negotiation::receive_sign_of_life(std::string_view bytes) {
  Alive alive;
  if (decode(bytes, &alive) && alive.epoch == config_.epoch) return Status::success();
  return bad_message(tree_.parent, "a broken sign of life");
}

void Negotiation::conclude(TimePoint time) {
  if (is_over_) return;
  if (is_open() && stalls_inspector_.is_due(time)) look_round(time);
  if (tree_.is_root()) {
    decide();
  } else {
    report_up();
  }
}

TimePoint Negotiation::next_look() const {
  return is_open() && !is_over_ ? stalls_inspector_.next_look() : TimePoint::max();
}

void Negotiation::report_up() {
  do {
    for (CompleteTensor& tensor : readiness_.take_complete(config_.message_bytes)) {
      if (tensor.number != 0) {
        report_.numbers.push_back(tensor.number);
      } else {
        report_.fresh.push_back({std::move(tensor.name), std::move(tensor.variants)});
      }
    }
    if (!report_.empty()) send_report();
  } while (readiness_.has_complete());
}

void Negotiation::send_report() {
  report_.epoch = config_.epoch;
  report_.decisions = decisions_;
  messages_.emplace_back(tree_.parent, encode_control(ControlType::kReport, report_));
  report_ = {};
}

std::vector<Negotiation::Ready> Negotiation::collect_ready(Decision& decision) {
  std::vector<Ready> ready;
  for (CompleteTensor& tensor : readiness_.take_complete(config_.message_bytes)) {
    if (Status verdict = judge(tensor.name, tensor.variants); !verdict.ok()) {
      decision.refusals.push_back(
          {tensor.name, static_cast<std::uint32_t>(verdict.code), verdict.message});
      continue;
    }
    const auto own = awaiting_.find(tensor.name);
    HV_CHECK(own != awaiting_.end(), "the root itself has what is complete: " + tensor.name);
    Ready next{own->second.order, tensor.number, {}, own->second.submission.description};
    if (tensor.number == 0)
      next.fresh = {tensor.name, extents_by_rank(tensor.variants.front(), tree_.size)};
    ready.push_back(std::move(next));
  }
  std::sort(ready.begin(), ready.end(),
            [](const Ready& a, const Ready& b) { return a.order < b.order; });
  return ready;
}

void Negotiation::decide() {
  do {
    Decision decision = next_decision();
    if (decision.empty()) return;
    send_down(decision);
    HV_CHECK(apply(decision), "the root decides on what it has itself");
  } while (readiness_.has_complete());
}

Decision Negotiation::next_decision() {
  Decision decision;
  decision.epoch = config_.epoch;
  std::vector<Ready> ready = collect_ready(decision);
  std::vector<const TensorDescription*> tensors;
  for (const Ready& tensor : ready) tensors.push_back(&tensor.description);
  for (const auto& members : plan_fusion(tensors, config_.fusion_threshold_bytes)) {
    Group& group = decision.groups.emplace_back();
    for (const std::size_t i : members) {
      if (ready[i].number != 0) {
        group.numbers.push_back(ready[i].number);
      } else {
        group.fresh.push_back(std::move(ready[i].fresh));
      }
    }
  }
  // Whoever leaves is the last word.
  if (!leaving_.empty() && !readiness_.has_complete())
    decision.leaving = static_cast<std::int32_t>(leaving_.front());
  return decision;
}

void Negotiation::send_down(const Decision& decision) {
  if (tree_.children.empty()) return;
  const std::string message = encode_control(ControlType::kDecision, decision);
  for (const ControlTree::Child& child : tree_.children)
    messages_.emplace_back(child.rank, message);
}

// Every number is looked up before anything is inserted: an insertion may evict an entry that this
// same decision uses. False when the decision speaks of something that this rank has not reported.
bool Negotiation::resolve(const Decision& decision, std::vector<StartGroup>* starts) {
  for (const Group& group : decision.groups) {
    StartGroup& start = starts->emplace_back();
    for (const std::uint64_t number : group.numbers) {
      const ResponseCache::Entry* entry = cache_.find(number);
      if (entry == nullptr) return false;
      start.tensors.push_back({entry->name, entry->first_extents});
    }
    start.tensors.insert(start.tensors.end(), group.fresh.begin(), group.fresh.end());
    if (!can_start(start)) return false;
  }
  return true;
}

// Memory is read and written by what is decided: it must be about tensors as this rank has them.
bool Negotiation::can_start(const StartGroup& start) const {
  const TensorDescription* first = nullptr;
  for (const FreshTensor& tensor : start.tensors) {
    const auto found = awaiting_.find(tensor.name);
    if (found == awaiting_.end()) return false;
    const Submission& own = found->second.submission;
    if (first != nullptr && !can_share(*first, own.description)) return false;
    first = &own.description;
    const std::vector<std::int64_t>& extents = tensor.first_extents;
    if (own.description.kind != CollectiveKind::kAllgather) {
      if (!extents.empty()) return false;
      continue;
    }
    if (extents.size() != static_cast<std::size_t>(tree_.size) ||
        extents[static_cast<std::size_t>(tree_.self)] != own.first_extent ||
        *std::min_element(extents.begin(), extents.end()) < 0) {
      return false;
    }
  }
  return !start.tensors.empty();
}

bool Negotiation::apply(const Decision& decision) {
  std::vector<StartGroup> starts;
  if (!resolve(decision, &starts)) return false;
  ++decisions_;
  std::vector<Submission> fresh;
  for (const Group& group : decision.groups) {
    for (const std::uint64_t number : group.numbers) {
      cache_.touch(number);
      if (awaiting_.erase(cache_.find(number)->name) == 0) return false;  // named twice
    }
    for (const FreshTensor& tensor : group.fresh) {
      auto own = awaiting_.extract(tensor.name);
      if (own.empty()) return false;  // named twice
      fresh.push_back(std::move(own.mapped().submission));
    }
  }
  insert(decision, fresh);
  for (StartGroup& start : starts) verdicts_.push_back(std::move(start));
  for (const Refusal& refusal : decision.refusals) {
    // What has started may not fail by the way, and no refusal is a success.
    if (refusal.code != static_cast<std::uint32_t>(StatusCode::kMismatch)) return false;
    if (awaiting_.erase(refusal.name) == 0) return false;
    verdicts_.push_back(FailTensor{refusal.name, {StatusCode::kMismatch, refusal.words}});
  }
  if (decision.leaving < 0) return true;
  is_over_ = true;
  awaiting_.clear();
  verdicts_.push_back(RankLeft{decision.leaving});
  return true;
}

// fresh: this rank's own, in the order in which the decision names them.
void Negotiation::insert(const Decision& decision, const std::vector<Submission>& fresh) {
  std::size_t next = 0;
  for (const Group& group : decision.groups) {
    for (const FreshTensor& tensor : group.fresh) {
      readiness_.forget(cache_.insert(tensor.name, fresh[next++].description, tensor.first_extents),
                        decisions_);
    }
  }
}

void Negotiation::look_round(TimePoint time) {
  look_for_stalls(time);
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

void Negotiation::look_for_stalls(TimePoint time) {
  std::size_t bytes = 0;
  for (Waiting& stall : stalls_inspector_.inspect(readiness_.waiting(), time)) {
    if (tree_.is_root()) {
      stalls_.push_back(std::move(stall));
      continue;
    }
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
