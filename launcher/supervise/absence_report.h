// AbsenceReport: who has not come, when ranks wait for long to meet the others (hvrun_init, or MPI
// where hvrun has wired it).
// SPDX-License-Identifier: Apache-2.0
//
// An agent says that a rank of its own waits (FenceStalled); hvrun asks all agents which of their
// ranks run and wait nowhere, and names them. io_context thread only.
#pragma once

#include <functional>
#include <string>

#include "launcher/supervise/job.h"
#include "src/wire/messages.h"

namespace hv::launcher {

class AbsenceReport {
 public:
  // job outlives this.
  AbsenceReport(Job& job, std::function<void(const std::string&)> warn)
      : job_(job), warn_(std::move(warn)) {}

  // Several agents tell of the same wait: it is told once. One that is too long ends the job,
  // unless something else does or it is over by the time when all have been asked.
  void fence_stalled(const wire::FenceStalled& stall);

 private:
  boost::asio::awaitable<void> ask();
  boost::asio::awaitable<void> hear_all();
  bool is_past_caring() const;
  bool still_waits() const;
  void tell();

  Job& job_;
  std::function<void(const std::string&)> warn_;
  bool is_asking_ = false;
  bool is_too_long_ = false;
  bool is_by_mpi_ = false;  // of the last one
  Duration waited_{};       // the longest that was told since the last answer
  Duration told_{};         // of the last words
  TimePoint told_at_;       // when they were said
};

// "ranks 2-3 on host b, rank 5 on host c"; empty when nobody is absent. Pure.
std::string absence_words(const Job& job);
// What to do about the first of them.
std::string absence_advice(const Job& job, bool is_by_mpi = false);

}  // namespace hv::launcher
