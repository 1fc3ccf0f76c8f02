// AbsenceReport: who has not come, when ranks wait for long to meet the others (hvrun_init, or MPI
// where hvrun has wired it).
// SPDX-License-Identifier: Apache-2.0
//
// An agent says that a rank of its own waits (FenceStalled); hvrun asks all agents which of their
// ranks run and wait nowhere, and names them. io_context thread only.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "launcher/supervise/job.h"
#include "src/wire/messages.h"

namespace hv::launcher {

class AbsenceReport {
 public:
  // job outlives this.
  // look: tells where those ranks stand that are absent.
  AbsenceReport(Job& job, std::function<void(const std::string&)> warn,
                std::function<void(const std::vector<int>& absent, Duration waited)> look)
      : job_(job), warn_(std::move(warn)), look_(std::move(look)) {}

  // Several agents tell of the same wait: it is told once. One that is too long ends the job,
  // unless something else does or it is over by the time when all have been asked. Each meeting has
  // its own waits: what is told of one says nothing of another.
  void fence_stalled(const wire::FenceStalled& stall);
  // Some ranks have begun MPI by PMIx, some by PMI-1. Where neither are all, they wait for each
  // other for ever, and the job ends.
  void begun_by_two_ways();

 private:
  struct Wait {
    bool is_asked = false;  // agents have told of it, and the answer is still to come
    bool is_too_long = false;
    Duration waited{};  // the longest that was told since the last answer
    Duration told{};    // of the last words
    TimePoint told_at;  // when they were said
    bool is_told(Duration how_long) const;
  };
  void begin_asking();
  boost::asio::awaitable<void> ask();
  boost::asio::awaitable<void> hear_all();
  std::array<Wait, wire::kMeetings> take_asked();
  bool is_past_caring() const;
  bool still_waits(wire::Meeting meeting, bool is_too_long) const;
  void tell(wire::Meeting meeting, const Wait& wait);
  bool end_two_mpis();

  Job& job_;
  std::function<void(const std::string&)> warn_;
  std::function<void(const std::vector<int>&, Duration)> look_;
  bool is_asking_ = false;
  bool have_two_ways_begun_ = false;  // which is yet to be asked of
  std::array<Wait, wire::kMeetings> waits_{};
};

// "ranks 2-3 on host b, rank 5 on host c"; empty when nobody is absent. Pure.
std::string absence_words(const Job& job);
// "in MPI_Init rank 0 on host a came by PMIx ..., and rank 1 on host b by PMI-1 ..."; empty: there
// are no such ranks. Pure.
std::string two_mpis_words(const Job& job);
// What to do about the first of them.
std::string absence_advice(const Job& job, wire::Meeting meeting);

}  // namespace hv::launcher
