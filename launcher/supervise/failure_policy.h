// FailurePolicy: decides which failure is the cause of a job's end. Pure: time is passed in.
// SPDX-License-Identifier: Apache-2.0
//
// The first report often names a victim: peers see EOF before a big process can be reaped. So after
// the first failure all ends are collected: for at least 250 ms, and until every agent reports that
// no rank is on its way out, and every rank that survivors named as lost has ended or is stopped
// (SIGSTOP); at most 5 s. Then the cause is, in this order: a lost host; a rank ended by a signal
// that hvrun did not send; a rank that peers named as lost; the earliest non-zero exit code by
// corrected time, or, if that rank was still in the job when another rank left it in order to fail,
// the other rank (an interpreter leaves for a program that calls exit(3)); a rank that ended with 0
// while MPI waits for it. Every other failure is a consequence. A rank that ended with 0 and left
// before the cause is reported next to it: whether it was still needed is not known.
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
  bool left_unannounced = false;  // it had joined the others, and left without a LeaveNotice
  bool never_joined = false;
  std::int64_t left_ns = 0;  // time of its LeaveNotice; 0: none
  std::size_t arrival = 0;   // arrival order, counted from 1; FailurePolicy sets it
  wire::PostMortem found{};  // by its agent
  wire::SigtermUse on_sigterm = wire::SigtermUse::kDefault;
  bool may_hold_text = false;  // its program, where it writes to a pipe
  double grace_s = 0;          // as in wire::Exited

  bool failed() const { return !status.clean(); }
};

class FailurePolicy {
 public:
  explicit FailurePolicy(int ranks) : ranks_(ranks) {}

  void rank_ended(const RankEnd& end, TimePoint now);
  // reason: the text after the rank's name, such as "gave no sign of life for 3 s". by: the rank
  // that lost it.
  void named_lost(int rank, const std::string& reason, int by);
  // The rank ended with 0 without this MPI call, in which others wait. The first rank counts.
  void missed_in_mpi(int rank, const std::string& call, TimePoint now);
  bool has_lost_a_peer(int rank) const { return losers_.count(rank) > 0; }
  // host: its position in the epoch. ranks: all on that host, of which no more reports come.
  void host_lost(int host, const std::string& reason, const std::vector<int>& ranks, TimePoint now);
  // Every reachable agent has answered a query sent at `sent`. exiting: ranks on their way out at
  // that time.
  void exiting_ranks(const std::set<int>& exiting, TimePoint sent);
  // Stopped ranks, by the same answers.
  void stopped_ranks(std::set<int> stopped) { stopped_ = std::move(stopped); }

  // A failure has happened. Its cause may not be decided yet.
  bool failed() const { return first_failure_.has_value(); }
  bool decided(TimePoint now) const;
  FailureCause cause() const;
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
  FailureCause cause_by_rank(int rank) const;

  int ranks_;
  std::map<int, RankEnd> ends_;
  std::set<int> unreachable_;  // ranks of lost hosts
  struct NamedLost {
    int times = 0;
    std::string reason;  // by the first rank that named it
  };
  std::map<int, NamedLost> named_lost_;
  std::optional<std::pair<int, std::string>> missed_;  // rank and call of missed_in_mpi()
  std::set<int> losers_;                               // ranks that have named another as lost
  std::optional<TimePoint> first_failure_;
  std::optional<TimePoint> last_query_;
  std::set<int> exiting_;
  std::set<int> stopped_;
  std::optional<int> lost_host_;
  std::string lost_reason_;
};

}  // namespace hv::launcher
