// AbsenceReport: names the ranks that are missing when others wait too long for them in hvrun_init,
// or in MPI that hvrun has wired.
// SPDX-License-Identifier: Apache-2.0
//
// An agent reports that one of its ranks waits (FenceStalled). hvrun then asks all agents which of
// their ranks run and wait nowhere, and names those. io_context thread only.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "launcher/supervise/job.h"
#include "launcher/supervise/report/console.h"
#include "launcher/supervise/stacks/stack_inquiry.h"
#include "src/wire/messages.h"

namespace hv::launcher {

class AbsenceReport {
 public:
  // All outlive this. inquiry: reports the stacks of absent ranks.
  AbsenceReport(Job& job, const Console& console, StackInquiry& inquiry)
      : job_(job), console_(console), inquiry_(inquiry) {}

  // Several agents report the same wait, again when it has become twice as long, and ranks may wait
  // for the same ranks in two kinds of rendezvous: the user sees one warning for each rank that is
  // missing. A wait that is too long ends the job, unless the job ends anyway or the wait is over
  // when all agents have answered.
  void fence_stalled(const wire::FenceStalled& stall);
  // Some ranks have begun MPI by PMIx, some by PMI-1. They wait for each other for ever, unless one
  // of the groups is all ranks: then the job ends.
  void both_mpis_begun();

 private:
  struct Wait {
    bool is_due = false;  // agents have reported it, and the user has not seen it yet
    bool is_too_long = false;
    Duration waited{};      // the longest that agents have reported since the last query
    Duration reported{};    // the duration in the last message to the user
    TimePoint reported_at;  // when that message was printed
    bool is_reported(Duration how_long) const;
  };
  void begin_queries();
  boost::asio::awaitable<void> query_and_report();
  boost::asio::awaitable<void> query_all();
  std::array<Wait, wire::kMeetings> take_due();
  bool is_obsolete() const;
  bool still_waits(wire::Meeting meeting, bool is_too_long) const;
  bool is_known(const std::vector<int>& absent, const Wait& wait) const;
  void report(wire::Meeting meeting, const Wait& wait);
  void warn(const std::string& text, wire::Meeting meeting, const Wait& wait);
  bool end_two_mpis();

  Job& job_;
  const Console& console_;
  StackInquiry& inquiry_;
  bool is_querying_ = false;
  bool have_both_mpis_begun_ = false;  // not checked yet
  std::array<Wait, wire::kMeetings> waits_{};
  std::map<int, TimePoint> warned_of_;  // absent ranks; when the last warning named each
};

// "ranks 2-3 on host b, rank 5 on host c"; empty when no rank is absent. Pure.
std::string describe_absent(const Job& job);
// "in MPI_Init rank 0 on host a came by PMIx ..., and rank 1 on host b by PMI-1 ..."; empty: there
// are no such ranks. Pure.
std::string describe_two_mpis(const Job& job);
// Advice about the first absent rank. ends_the_job: hvrun ends the rank as well, so that nobody can
// look at its process.
std::string absence_advice(const Job& job, wire::Meeting meeting, bool ends_the_job);

}  // namespace hv::launcher
