// The steps (a) to (e) of negotiation.h.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/negotiation/negotiation.h"

#include <algorithm>
#include <cstdint>

#include "runtime/engine/negotiation/fusion_plan.h"
#include "runtime/engine/negotiation/mismatch.h"
#include "runtime/engine/negotiation/report_check.h"
#include "src/base/check.h"
#include "src/base/text.h"

namespace hv::runtime {
namespace {

constexpr std::size_t kMostFailureBytes = 2000;

}  // namespace

Negotiation::Negotiation(const NegotiationConfig& config, ControlTree tree)
    : config_(config),
      observation_(or_own(config.observation)),
      tree_(std::move(tree)),
      cache_(config.cache_capacity),
      readiness_(tree_, cache_),
      prediction_(tree_, readiness_.arrivals()),
      planner_(tree_.size > 1 ? std::min(config.bucket_bytes, config.fusion_threshold_bytes) : 0),
      // Below the root a stall is passed on earlier, so that the root can name every rank when it
      // speaks.
      stalls_inspector_(
          tree_.is_root()
              ? StallInspector(config.stall_limit, config.stall_end)
              : StallInspector(shorter_limit(config.stall_limit, config.stall_end) / 2)),
      groups_inspector_(config.stall_limit),
      parent_watch_(config.stall_limit),
      questions_(config.epoch, tree_, shorter_limit(config.stall_limit, config.stall_end) / 4) {}

void Negotiation::submit(Submission submission, TimePoint time) {
  if (is_over_) return;
  const ResponseCache::Entry* known = cache_.find(submission.name);
  bool is_cached = known != nullptr && known->description == submission.description;
  if (is_cached && !known->first_extents.empty()) {
    is_cached =
        known->first_extents[static_cast<std::size_t>(tree_.self)] == submission.first_extent;
  }
  Counters& counters = observation_->counters;
  ++(is_cached ? counters.cache_hits : counters.cache_misses);
  if (tree_.is_root() && observation_->timeline.is_on())
    observation_->timeline.heard_of(config_.set, submission.name, words_for_mark({tree_.self}));
  const bool is_predicted = known != nullptr && prediction_.covers(known->number);
  if (is_cached && is_predicted) {
    prediction_.hold(known->number, time);
  } else if (is_cached) {
    readiness_.add_number(tree_.self, known->number, time);
  } else {
    if (is_predicted) deviate();  // another shape than before, say
    Variant own{submission.description, {static_cast<std::uint32_t>(tree_.self)}, {}};
    if (has_own_extents(own.description.kind)) own.first_extents = {submission.first_extent};
    readiness_.add_fresh(tree_.self, {submission.name, {std::move(own)}}, time);
  }
  const std::string name = submission.name;
  const bool is_new =
      awaiting_.try_emplace(name, Awaiting{std::move(submission), submissions_++, time}).second;
  HV_CHECK(is_new, "a name in flight was refused before: " + name);
}

void Negotiation::join(TimePoint time) {
  const auto self = static_cast<std::uint32_t>(tree_.self);
  has_joined_ = true;
  joined_since_ = time;
  note_joined(self);
  join_readiness(tree_.self);
  deviate();
}

void Negotiation::note_joined(std::uint32_t rank) {
  joined_.add(rank);
  if (!tree_.is_root()) newly_joined_.push_back(rank);
}

void Negotiation::leave() {
  const auto self = static_cast<std::uint32_t>(tree_.self);
  (tree_.is_root() ? leaving_ : report_.leaving).push_back(self);
}

void Negotiation::end(const std::string& words) {
  (tree_.is_root() ? ending_ : report_.ending) = words.substr(0, kMostFailureBytes);
}

Status Negotiation::bad_message(int from, const char* what) const {
  return {StatusCode::kSystem,
          "rank " + std::to_string(job_rank(config_.members, from)) + " sent " + what +
              " while ranks agreed on what is ready; do all ranks run the same libhvrun?"};
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
  if (type == ControlType::kStallQuestion && is_parent) {
    return questions_.receive_question(message, &messages_)
               ? Status::success()
               : bad_message(from, "a broken question");
  }
  if (type == ControlType::kStallAnswer && is_child) {
    return questions_.receive_answer(*child, message, &messages_)
               ? Status::success()
               : bad_message(from, "a broken answer");
  }
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
  if (failure.words.empty()) return bad_message(from, "a word of failure without words");
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
  spell_out_ranks(report, child.subtree);
  if (!is_valid(report, child.subtree, joined_) || report.decisions > decisions_)
    return bad_message(from, "a report that cannot be");
  readiness_.arrivals().child_says(from, report.latest);
  std::vector<std::uint64_t> numbers;
  if (!unpack_numbers(report.numbers, cache_.size() + readiness_.retired(), &numbers))
    return bad_message(from, "more numbers of tensors than there are");
  mark_ready(child, report, numbers);
  for (const std::uint64_t number : numbers) {
    if (prediction_.covers(number)) deviate();
    if (!readiness_.add_number(from, number, time))
      return bad_message(from, "the number of a tensor that nobody knows");
  }
  if (!take_buckets(report, from, time))
    return bad_message(from, "the number of a bucket that nobody knows");
  for (const FreshReport& fresh : report.fresh) readiness_.add_fresh(from, fresh, time);
  for (const PartialReport& partial : report.partial) readiness_.add_partial(from, partial, time);
  readiness_.acknowledge(from, report.decisions);
  prediction_.acknowledge(readiness_.acknowledged());
  for (const std::uint32_t rank : report.joined) note_joined(rank);
  if (!report.joined.empty()) deviate();
  if (!report.joined.empty() && joined_.covers(child.subtree)) join_readiness(from);
  auto& leaving = tree_.is_root() ? leaving_ : report_.leaving;
  leaving.insert(leaving.end(), report.leaving.begin(), report.leaving.end());
  for (const std::uint32_t set : report.launches) ask_launch(set);
  if (!report.ending.empty()) end(printable(report.ending, kMostFailureBytes));
  return Status::success();
}

Status Negotiation::receive_decision(std::string_view bytes) {
  Decision decision;
  if (!decode(bytes, &decision) || decision.epoch != config_.epoch ||
      decision.leaving >= tree_.size || decision.last_joined >= tree_.size) {
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
  if (questions_.is_holding()) tell_answered(time);
  if (is_open() && stalls_inspector_.is_due(time)) look_round(time);
  if (prediction_.is_open() && time >= patience_ends()) deviate();
  if (tree_.is_root()) {
    decide(time);
  } else {
    report_up();
  }
}

TimePoint Negotiation::next_look() const {
  if (!is_open() || is_over_) return TimePoint::max();
  return std::min({stalls_inspector_.next_look(), questions_.next_look(), patience_ends()});
}

void Negotiation::report_up() {
  report_.buckets = prediction_.take_whole();
  do {
    std::vector<std::uint64_t> numbers;
    for (CompleteTensor& tensor : readiness_.take_complete(config_.message_bytes)) {
      if (tensor.number != 0) {
        numbers.push_back(tensor.number);
      } else {
        report_.fresh.push_back({std::move(tensor.name), std::move(tensor.variants)});
        leave_out_ranks(report_.fresh.back(), subtree_size(tree_));
      }
    }
    report_.numbers = pack_numbers(std::move(numbers));
    // With the last part: what the ranks gave before they joined counts.
    if (!readiness_.has_complete()) report_.joined = std::exchange(newly_joined_, {});
    if (!report_.empty()) send_report();
  } while (readiness_.has_complete());
}

void Negotiation::send_report() {
  report_.epoch = config_.epoch;
  report_.decisions = decisions_;
  report_.latest = readiness_.arrivals().take_latest();
  messages_.emplace_back(tree_.parent, encode_control(ControlType::kReport, report_));
  report_ = {};
}

void Negotiation::send_down(const Decision& decision) {
  if (tree_.children.empty()) return;
  const std::string message = encode_control(ControlType::kDecision, decision);
  for (const ControlTree::Child& child : tree_.children)
    messages_.emplace_back(child.rank, message);
}

// nullptr: of a bucket that is none, or one with other tensors beside it.
const std::vector<std::uint64_t>* Negotiation::numbers_of(const Group& group) const {
  if (group.bucket == 0) return &group.numbers;
  return group.numbers.empty() && group.fresh.empty() ? prediction_.find(group.bucket) : nullptr;
}

// Every number is looked up before anything is inserted: an insertion may evict an entry that this
// same decision uses. False when the decision speaks of something that this rank has not reported.
bool Negotiation::resolve(const Decision& decision, std::vector<StartGroup>* starts) {
  for (const Group& group : decision.groups) {
    StartGroup& start = starts->emplace_back();
    const std::vector<std::uint64_t>* numbers = numbers_of(group);
    if (numbers == nullptr) return false;
    for (const std::uint64_t number : *numbers) {
      const ResponseCache::Entry* entry = cache_.find(number);
      if (entry == nullptr || prediction_.is_held(number)) return false;
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
    if (found == awaiting_.end() && !is_absent_from(tensor)) return false;
    const TensorDescription& description = found == awaiting_.end()
                                               ? tensor.description.front()
                                               : found->second.submission.description;
    if (first != nullptr && !can_share(*first, description)) return false;
    first = &description;
    const std::vector<std::int64_t>& extents = tensor.first_extents;
    if (!has_own_extents(description.kind)) {
      if (!extents.empty()) return false;
      continue;
    }
    const std::int64_t own_extent =
        found == awaiting_.end() ? 0 : found->second.submission.first_extent;
    if (extents.size() != static_cast<std::size_t>(tree_.size) ||
        extents[static_cast<std::size_t>(tree_.self)] != own_extent ||
        *std::min_element(extents.begin(), extents.end()) < 0) {
      return false;
    }
  }
  return !start.tensors.empty();
}

// This rank has joined, and the decision says what it is.
bool Negotiation::is_absent_from(const FreshTensor& tensor) const {
  return has_joined_ && tensor.present > 0 && tensor.description.size() == 1 &&
         tensor.description[0].is_valid() && allows_absence(tensor.description[0].kind);
}

bool Negotiation::apply(const Decision& decision) {
  std::vector<StartGroup> starts;
  if (!resolve(decision, &starts)) return false;
  ++decisions_;
  ++observation_->counters.decisions;
  std::vector<Submission> fresh;
  for (const Group& group : decision.groups) {
    if (group.bucket != 0) ++observation_->counters.kept_buckets;
    for (const std::uint64_t number : *numbers_of(group)) {
      cache_.touch(number);
      if (awaiting_.erase(cache_.find(number)->name) == 0) return false;  // named twice
    }
    for (const FreshTensor& tensor : group.fresh) {
      auto own = awaiting_.extract(tensor.name);
      if (!own.empty()) {
        fresh.push_back(std::move(own.mapped().submission));
      } else if (is_absent_from(tensor)) {
        fresh.push_back({tensor.name, tensor.description.front()});
      } else {
        return false;  // named twice
      }
    }
  }
  if (decision.gives_up || evicts(decision)) give_up_buckets();
  insert(decision, fresh);
  if (!announce(decision.buckets)) return false;
  for (StartGroup& start : starts) verdicts_.push_back(std::move(start));
  for (const Refusal& refusal : decision.refusals) {
    // What has started may not fail by the way, and no refusal is a success.
    const auto code = static_cast<StatusCode>(refusal.code);
    if (code != StatusCode::kMismatch && code != StatusCode::kUnsupported) return false;
    if (awaiting_.erase(refusal.name) == 1) {
      verdicts_.push_back(FailTensor{refusal.name, {code, refusal.words}});
    } else if (!has_joined_) {
      return false;
    }
  }
  for (const std::uint32_t set : decision.launches) verdicts_.push_back(NextLaunch{set});
  if (decision.last_joined >= 0) {
    if (!std::exchange(has_joined_, false)) return false;
    joined_.clear();
    readiness_.all_joined();
    verdicts_.push_back(AllJoined{decision.last_joined});
  }
  if (decision.leaving < 0 && decision.ending.empty()) return true;
  is_over_ = true;
  awaiting_.clear();
  if (decision.leaving >= 0) {
    verdicts_.push_back(RankLeft{decision.leaving});
  } else {
    verdicts_.push_back(StallEnded{printable(decision.ending, kMostFailureBytes)});
  }
  return true;
}

// Something may go from the cache, and a bucket with it.
bool Negotiation::evicts(const Decision& decision) const {
  if (!prediction_.is_live()) return false;
  std::size_t more = 0;
  for (const Group& group : decision.groups) {
    for (const FreshTensor& tensor : group.fresh) {
      const ResponseCache::Entry* known = cache_.find(tensor.name);
      if (known != nullptr && prediction_.covers(known->number)) return true;
      more += known == nullptr;
    }
  }
  return cache_.size() + more > config_.cache_capacity;
}

// fresh: this rank's own, in the order in which the decision names them.
void Negotiation::insert(const Decision& decision, const std::vector<Submission>& fresh) {
  std::size_t next = 0;
  for (const Group& group : decision.groups) {
    for (const FreshTensor& tensor : group.fresh) {
      const auto evicted =
          cache_.insert(tensor.name, fresh[next++].description, tensor.first_extents);
      groups_.spell_out(evicted);
      readiness_.forget(evicted, decisions_);
    }
  }
}

}  // namespace hv::runtime
