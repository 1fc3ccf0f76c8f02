// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/failure_policy.h"

#include <algorithm>
#include <csignal>

namespace hv::launcher {
namespace {

// Runtimes end a process by SIGABRT or SIGPIPE when they lose a peer: rather a consequence than a
// cause.
bool is_self_inflicted(int signal) { return signal == SIGABRT || signal == SIGPIPE; }

}  // namespace

void FailurePolicy::note_failure(TimePoint now) {
  if (!first_failure_) first_failure_ = now;
}

void FailurePolicy::rank_ended(const RankEnd& end, TimePoint now) {
  ends_[end.rank] = end;
  unreachable_.erase(end.rank);
  exiting_.erase(end.rank);
  // What its agent ended by itself has a reason that comes later: the host is lost.
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

bool FailurePolicy::waits_for_named_rank() const {
  return std::any_of(named_lost_.begin(), named_lost_.end(), [this](const auto& named) {
    return !ends_.count(named.first) && !unreachable_.count(named.first);
  });
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

const RankEnd* FailurePolicy::named_rank() const {
  const RankEnd* best = nullptr;
  int most = 0;
  for (const auto& [rank, times] : named_lost_) {
    const auto end = ends_.find(rank);
    if (end == ends_.end() || end->second.signal_was_ours || times <= most) continue;
    best = &end->second;
    most = times;
  }
  return best;
}

const RankEnd* FailurePolicy::first_bad_exit() const {
  const RankEnd* best = nullptr;
  for (const auto& [rank, end] : ends_) {
    if (!end.failed() || end.signal_was_ours) continue;
    if (!best || end.time_ns < best->time_ns) best = &end;
  }
  return best;
}

Verdict FailurePolicy::verdict() const {
  Verdict verdict;
  const RankEnd* cause = nullptr;
  if (lost_host_) {
    verdict.host = lost_host_;
    verdict.reason = lost_reason_;
    verdict.exit_code = 5;
  } else {
    cause = signalled_rank();
    // A rank that ended itself after losing a peer yields to the peer that was lost.
    if (!cause || is_self_inflicted(cause->status.code)) {
      if (const RankEnd* named = named_rank()) cause = named;
    }
    if (!cause) cause = first_bad_exit();
    if (cause) {
      verdict.rank = cause->rank;
      verdict.exit_code = cause->failed() ? cause->status.shell_code() : 1;
    }
  }
  for (const auto& [rank, end] : ends_) {
    if (end.failed() && (!cause || rank != cause->rank)) verdict.consequences.push_back(rank);
  }
  return verdict;
}

}  // namespace hv::launcher
