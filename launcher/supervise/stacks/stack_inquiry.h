// StackInquiry: asks agents for the stacks of their ranks, and reports them: before a job is ended
// by its time limit or SIGQUIT, and once for each stall.
// SPDX-License-Identifier: Apache-2.0
//
// io_context thread only.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <deque>
#include <map>
#include <optional>
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

  // Reports all ranks that run. The end of the job waits for that, unless the user asks for the end
  // twice.
  boost::asio::awaitable<void> report_before_end();
  // Ranks that others wait for.
  struct Stall {
    std::string text;          // "tensor 'w' has waited 61 s for rank 3"
    std::vector<int> missing;  // ascending; empty: not known, so that all ranks are asked
    TimePoint since{};
    int waiting = -1;  // a rank that waits; -1: any that is not missing
  };
  // Reports it while the job continues. A stall that overlaps a reported one with the same ranks is
  // not reported again.
  void add_stall(Stall stall);
  void add_tensor_stall(const wire::TensorStalled& stalled);
  // A rank waits in torch.distributed, which does not say for whom. A wait that is too long ends
  // the job.
  void add_call_stall(const wire::CallStalled& stalled);

 private:
  struct Answer {
    std::vector<StackOfRank> stacks;
    std::vector<std::string> missing_hosts;  // did not answer
  };
  // ranks: empty: all that run.
  boost::asio::awaitable<void> report(std::string text, std::vector<int> ranks, bool is_end);
  boost::asio::awaitable<void> report_stalls();
  void enqueue(Stall stall);
  std::vector<int> ranks_to_ask(const Stall& stall) const;
  bool is_reported(const Stall& stall) const;
  bool is_obsolete() const;
  bool send_requests(std::uint32_t number, const std::vector<int>& ranks);
  bool have_all_answered(std::uint32_t number) const;
  Answer collect_answer(std::uint32_t number);
  int first_waiting_rank(const std::vector<int>& missing) const;

  Job& job_;
  const Console& console_;
  std::uint32_t number_ = 0;               // of the last request
  bool is_reporting_ = false;              // report_stalls() runs
  std::deque<Stall> stalls_;               // not reported yet
  std::map<int, TimePoint> reported_;      // ranks that were waited for, and when that was reported
  std::optional<TimePoint> call_stalled_;  // when a rank has last reported that it waits in a call
};

}  // namespace hv::launcher
