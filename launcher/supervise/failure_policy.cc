// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/failure_policy.h"

#include <algorithm>
#include <csignal>

#include "launcher/supervise/timeouts.h"

namespace hv::launcher {
namespace {

// Runtimes end a process by SIGABRT or SIGPIPE when they lose a peer: a consequence, not a cause.
bool is_self_inflicted(int signal) { return signal == SIGABRT || signal == SIGPIPE; }

// The difference of a host's clock is as exact as its first messages are fast. Within this error
// the order of arrival decides: the consequences of an end arrive after it.
constexpr std::int64_t kClockError = 500'000'000;

bool was_first(const RankEnd& end, const RankEnd& other) {
  const std::int64_t later = end.time_ns - other.time_ns;
  if (later > kClockError || later < -kClockError) return later < 0;
  return end.arrival < other.arrival;
}

// A rank that ended with 0, and that the others may still have needed.
bool is_leaver(const RankEnd& end) {
  return !end.failed() && (end.left_unannounced || end.never_joined || end.left_ns != 0);
}

bool left_first(const RankEnd& leaver, const RankEnd& other) {
  return leaver.left_ns != 0 ? leaver.left_ns < other.time_ns : was_first(leaver, other);
}

}  // namespace

void FailurePolicy::note_failure(TimePoint now) {
  if (!first_failure_) first_failure_ = now;
}

void FailurePolicy::rank_ended(const RankEnd& end, TimePoint now) {
  ends_[end.rank] = end;
  ends_[end.rank].arrival = ends_.size();
  unreachable_.erase(end.rank);
  exiting_.erase(end.rank);
  // An agent that ends ranks unrequested has its own reason: the host is lost.
  if (end.failed() && !end.signal_was_ours) note_failure(now);
}

void FailurePolicy::host_lost(int host, const std::string& reason, const std::vector<int>& ranks,
                              TimePoint now) {
  if (!lost_host_) {
    lost_host_ = host;
    lost_reason_ = reason;
  }
  for (const int rank : ranks) {
    if (!ends_.count(rank)) unreachable_.insert(rank);
    exiting_.erase(rank);
  }
  note_failure(now);
}

void FailurePolicy::exiting_ranks(const std::set<int>& exiting, TimePoint sent) {
  exiting_.clear();
  for (const int rank : exiting) {
    if (!ends_.count(rank) && !unreachable_.count(rank)) exiting_.insert(rank);
  }
  last_query_ = sent;
}

void FailurePolicy::named_lost(int rank, const std::string& reason, int by) {
  losers_.insert(by);
  NamedLost& named = named_lost_[rank];
  if (named.times++ == 0) named.reason = reason;
}

void FailurePolicy::missed_in_mpi(int rank, const std::string& call, TimePoint now) {
  if (missed_) return;
  missed_.emplace(rank, call);
  note_failure(now);
}

// A stopped rank does not end, and is not waited for.
bool FailurePolicy::waits_for_named_rank() const {
  return std::any_of(named_lost_.begin(), named_lost_.end(), [this](const auto& named) {
    return !ends_.count(named.first) && !unreachable_.count(named.first) &&
           !stopped_.count(named.first);
  });
}

const RankEnd* FailurePolicy::end_of(int rank) const {
  const auto found = ends_.find(rank);
  return found == ends_.end() ? nullptr : &found->second;
}

bool FailurePolicy::decided(TimePoint now) const {
  if (!first_failure_) return false;
  if (ends_.size() + unreachable_.size() == static_cast<std::size_t>(ranks_)) return true;
  if (now >= *first_failure_ + kMostCollection) return true;
  if (now < *first_failure_ + kLeastCollection) return false;
  // A process shows as exiting only once its signal has been delivered: an early answer proves
  // nothing.
  const bool asked_late_enough =
      last_query_ && *last_query_ >= *first_failure_ + kLeastCollection / 2;
  return asked_late_enough && exiting_.empty() && !waits_for_named_rank();
}

const RankEnd* FailurePolicy::signalled_rank() const {
  const auto weight = [this](const RankEnd& end) {
    const auto named = named_lost_.find(end.rank);
    return std::tuple(is_self_inflicted(end.status.code), named == named_lost_.end(), end.time_ns);
  };
  const RankEnd* best = nullptr;
  for (const auto& [rank, end] : ends_) {
    if (!end.status.by_signal || end.signal_was_ours) continue;
    if (!best || weight(end) < weight(*best)) best = &end;
  }
  return best;
}

std::optional<int> FailurePolicy::named_rank() const {
  std::optional<int> best;
  int most = 0;
  const RankEnd* failed = first_bad_exit();
  for (const auto& [rank, named] : named_lost_) {
    const RankEnd* end = end_of(rank);
    if ((end && end->signal_was_ours) || named.times <= most) continue;
    // Peers may see the end of its connection before hvrun's report of its end, by chance.
    if (end && failed && is_leaver(*end) && left_first(*end, *failed)) continue;
    best = rank;
    most = named.times;
  }
  return best;
}

// Nothing proves that the cause needed the rank that left: that rank is reported next to the cause.
// A rank that never joined, had left in order or was killed did not fail for want of another rank.
std::optional<int> FailurePolicy::left_before(const RankEnd& cause) const {
  if (!cause.failed() || !cause.left_unannounced) return std::nullopt;
  if (cause.status.by_signal && !is_self_inflicted(cause.status.code)) return std::nullopt;
  const RankEnd* best = nullptr;
  for (const auto& [rank, end] : ends_) {
    if (!is_leaver(end) || !left_first(end, cause)) continue;
    if (!best || end.time_ns < best->time_ns) best = &end;
  }
  return best ? std::optional(best->rank) : std::nullopt;
}

const RankEnd* FailurePolicy::first_bad_exit() const {
  const RankEnd* best = nullptr;
  for (const auto& [rank, end] : ends_) {
    if (!end.failed() || end.signal_was_ours) continue;
    if (!best || end.time_ns < best->time_ns) best = &end;
  }
  return best;
}

FailureCause FailurePolicy::cause() const {
  FailureCause result;
  if (lost_host_) {
    result.host = lost_host_;
    result.reason = lost_reason_;
    result.exit_code = 5;
  } else if (const auto rank = cause_among_ranks()) {
    result = cause_by_rank(*rank);
  }
  for (const auto& [rank, end] : ends_) {
    if (end.failed() && rank != result.rank) result.consequences.push_back(rank);
  }
  return result;
}

std::optional<int> FailurePolicy::cause_among_ranks() const {
  const RankEnd* signalled = signalled_rank();
  if (signalled && !is_self_inflicted(signalled->status.code)) return signalled->rank;
  // A rank that ended itself after losing a peer yields to the peer that was lost.
  if (const auto named = named_rank()) return named;
  if (signalled) return signalled->rank;
  const RankEnd* first = first_bad_exit();
  if (!first) return missed_ ? std::optional(missed_->first) : std::nullopt;
  const RankEnd* leaver = failed_after_leaving(*first);
  return leaver ? leaver->rank : first->rank;
}

// Leaves out a rank that had lost a peer: it may have left because of that.
const RankEnd* FailurePolicy::failed_after_leaving(const RankEnd& first) const {
  if (!first.left_unannounced) return nullptr;
  const RankEnd* best = nullptr;
  for (const auto& [rank, end] : ends_) {
    if (!end.failed() || end.signal_was_ours || end.left_ns == 0) continue;
    if (!left_first(end, first) || has_lost_a_peer(rank)) continue;
    if (!best || end.left_ns < best->left_ns) best = &end;
  }
  return best;
}

FailureCause FailurePolicy::cause_by_rank(int rank) const {
  FailureCause result;
  result.rank = rank;
  const RankEnd* end = end_of(rank);
  // A rank that did not fail has no exit code for the job: the first failure has.
  const RankEnd* failed = end && end->failed() ? end : first_bad_exit();
  result.exit_code = failed ? failed->status.shell_code() : 1;
  if (end && !end->failed() && missed_ && missed_->first == rank) {
    result.awaited_in_call = missed_->second;
  } else if (end) {
    result.left_before = left_before(*end);
  } else {
    const auto named = named_lost_.find(rank);  // exists: only this can blame a living rank
    result.reason = named->second.reason.empty() ? "is gone for them" : named->second.reason;
    result.is_stopped = stopped_.count(rank) > 0;
  }
  return result;
}

}  // namespace hv::launcher
