// Which end was the cause? Policy for the first failure of a job; pure, time is passed in.
// SPDX-License-Identifier: Apache-2.0
//
// The first report often names a victim: peers see EOF before a big process can be reaped. So after
// the first failure everything that ends is collected: at least 250 ms, and until no rank is known
// to be on its way out (asked from every agent) and every rank that survivors named as lost has
// ended or stands still (SIGSTOP); at most 5 s. Then, in this order: a lost host; a rank ended by a
// signal that hvrun did not send; a rank that peers named as lost; the earliest non-zero exit code
// by corrected time, unless that rank was still in the job when another one left it in order to
// fail: that one then (an interpreter says goodbye for a program that calls exit(3)); a rank that
// has ended with 0 and is waited for by MPI. Everything else is a consequence. A rank that ended
// with 0 and left before the cause, with goodbye or without, is told beside it: nobody knows
// whether it was still needed.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launcher/record/job_record.h"
#include "src/base/clock.h"
#include "src/process/exit_status.h"
#include "src/wire/messages.h"

namespace hv::launcher {

struct RankEnd {
  int rank = 0;
  ExitStatus status;
  bool signal_was_ours = false;
  std::int64_t time_ns = 0;       // wall clock, corrected to hvrun's
  bool left_unannounced = false;  // it had joined the others, and said no goodbye
  bool never_joined = false;
  std::int64_t left_ns = 0;  // when it said goodbye; 0: it has not
  std::size_t arrival = 0;   // of how many ends this was the last; FailurePolicy counts
  wire::PostMortem found{};  // by its agent

  bool failed() const { return !status.clean(); }
};

class FailurePolicy {
 public:
  explicit FailurePolicy(int ranks) : ranks_(ranks) {}

  void rank_ended(const RankEnd& end, TimePoint now);
  // reason: what follows the rank's name, such as "gave no sign of life for 3 s". by: who lost it.
  void named_lost(int rank, const std::string& reason, int by);
  // That rank has ended with 0 without this call of MPI's, and others wait there. The first counts.
  void missed_in_mpi(int rank, const std::string& call, TimePoint now);
  bool has_lost_a_peer(int rank) const { return losers_.count(rank) > 0; }
  // ranks: those on that host, which hvrun will hear nothing of any more.
  void host_lost(int host, const std::string& reason, const std::vector<int>& ranks, TimePoint now);
  // Every agent that is there has answered a query sent at `sent`; exiting: ranks on their way out
  // then.
  void exiting_ranks(const std::set<int>& exiting, TimePoint sent);
  // As of the same answers.
  void stopped_ranks(std::set<int> stopped) { stopped_ = std::move(stopped); }

  // A failure has happened, and its cause is being looked for.
  bool failed() const { return first_failure_.has_value(); }
  bool decided(TimePoint now) const;
  Verdict verdict() const;
  const std::map<int, RankEnd>& ends() const { return ends_; }

 private:
  void note_failure(TimePoint now);
  bool waits_for_named_rank() const;
  const RankEnd* signalled_rank() const;
  std::optional<int> named_rank() const;
  std::optional<int> cause_among_ranks() const;
  const RankEnd* end_of(int rank) const;
  const RankEnd* first_bad_exit() const;
  const RankEnd* failed_after_leaving(const RankEnd& first) const;
  std::optional<int> left_before(const RankEnd& cause) const;
  Verdict verdict_of_rank(int rank) const;

  int ranks_;
  std::map<int, RankEnd> ends_;
  std::set<int> unreachable_;  // ranks of lost hosts
  struct NamedLost {
    int times = 0;
    std::string reason;  // of the first that told
  };
  std::map<int, NamedLost> named_lost_;
  std::optional<std::pair<int, std::string>> missed_;  // see missed_in_mpi
  std::set<int> losers_;                               // ranks that have named one
  std::optional<TimePoint> first_failure_;
  std::optional<TimePoint> last_query_;
  std::set<int> exiting_;
  std::set<int> stopped_;
  std::optional<int> lost_host_;
  std::string lost_reason_;
};

}  // namespace hv::launcher
