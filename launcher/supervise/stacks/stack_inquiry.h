// StackInquiry: asks agents for the stacks of their ranks, and reports them: before a job is ended
// by its time limit or SIGQUIT, and once for each stall.
// SPDX-License-Identifier: Apache-2.0
//
// io_context thread only.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "launcher/supervise/job.h"
#include "launcher/supervise/report/console.h"
#include "launcher/supervise/stacks/stack_report.h"
#include "src/wire/stacks.h"

namespace hv::launcher {

class StackInquiry {
 public:
  // Both outlive this.
  StackInquiry(Job& job, const Console& console) : job_(job), console_(console) {}

  // All ranks that run. The end of the job waits for the report, unless the user asks twice for it.
  boost::asio::awaitable<void> report_before_end();
  // Ranks that others wait for.
  struct Stall {
    std::string what;          // "tensor 'w' has waited 61 s for rank 3"
    std::vector<int> missing;  // ascending
    TimePoint since;
    int waiting = -1;  // one of those that wait; -1: any that is not missing
  };
  // While the job goes on. A stall that overlaps a reported one, for the same ranks, is the same:
  // it is not reported again.
  void add_stall(Stall stall);
  void add_tensor_stall(const wire::TensorStalled& stalled);

 private:
  struct Answer {
    std::vector<StackOfRank> stacks;
    std::vector<std::string> missing_hosts;  // without an answer
  };
  boost::asio::awaitable<void> report(std::string what, std::vector<int> ranks, bool is_end);
  boost::asio::awaitable<void> report_stalls();
  bool is_reported(const Stall& stall) const;
  bool send_requests(std::uint32_t number, const std::vector<int>& ranks);
  bool have_all_answered(std::uint32_t number) const;
  Answer take_answer(std::uint32_t number);
  int first_waiting_rank(const std::vector<int>& missing) const;

  Job& job_;
  const Console& console_;
  std::uint32_t number_ = 0;           // of the last request
  bool is_reporting_ = false;          // stalls
  std::deque<Stall> stalls_;           // not reported yet
  std::map<int, TimePoint> reported_;  // ranks that were waited for, and when that was reported
};

}  // namespace hv::launcher
