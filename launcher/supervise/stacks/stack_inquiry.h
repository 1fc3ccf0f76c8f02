// StackInquiry: asks agents where their ranks stand, and says it: before a job is ended for taking
// too long or by SIGQUIT, and once for each stall.
// SPDX-License-Identifier: Apache-2.0
//
// io_context thread only.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "launcher/supervise/job.h"
#include "launcher/supervise/stacks/stack_report.h"
#include "src/wire/stacks.h"

namespace hv::launcher {

class StackInquiry {
 public:
  // job outlives this.
  StackInquiry(Job& job, std::function<void(const std::string&)> say)
      : job_(job), say_(std::move(say)) {}

  // Of all ranks that run: the job is about to be ended, and waits for that. Somebody who asks
  // twice for its end waits no longer.
  boost::asio::awaitable<void> tell_before_end();
  // Of ranks that others wait for.
  struct Stall {
    std::string what;          // "tensor 'w' has waited 61 s for rank 3"
    std::vector<int> missing;  // ascending
    TimePoint since;
    int waiting = -1;  // one of those that wait; -1: any that is not missing
  };
  // While the job goes on. Who is waited for is told of once: a stall that overlaps one that was
  // told, for the same ranks, is the same.
  void stalled(Stall stall);
  void tensor_stalled(const wire::TensorStalled& told);

 private:
  struct Answer {
    std::vector<StackOfRank> stacks;
    std::vector<std::string> silent;  // hosts
  };
  boost::asio::awaitable<void> tell(std::string what, std::vector<int> ranks, bool is_end);
  boost::asio::awaitable<void> tell_of_stalls();
  bool is_told(const Stall& stall) const;
  bool send_requests(std::uint32_t number, const std::vector<int>& ranks);
  bool have_all_answered(std::uint32_t number) const;
  Answer take_answer(std::uint32_t number);
  int first_that_waits(const std::vector<int>& missing) const;

  Job& job_;
  const std::function<void(const std::string&)> say_;
  std::uint32_t number_ = 0;       // of the last request
  bool is_asking_ = false;         // because of stalls
  std::deque<Stall> stalls_;       // of which nobody was asked yet
  std::map<int, TimePoint> told_;  // ranks that were waited for, and when that was told
};

}  // namespace hv::launcher
